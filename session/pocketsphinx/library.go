//go:build cgo && pocketsphinx

package pocketsphinx

// The sphinxad of pkg-config's answer records from sound cards and brings half a desktop along; as-needed leaves it out.

/*
#cgo LDFLAGS: -Wl,--as-needed
#cgo pkg-config: pocketsphinx
#include <stdlib.h>
#include <pocketsphinx.h>
#include <sphinxbase/err.h>
#include <sphinxbase/cmn.h>
#include <sphinxbase/feat.h>

static void vela_quiet(void) { err_set_logfp(NULL); }

static cmn_t *vela_cmn(ps_decoder_t *ps) { return ps_get_feat(ps)->cmn_struct; }

// vela_set_voice makes mean the cepstral mean to begin with, worth so many frames of speech. The library alone would have it worth 500.
static void vela_set_voice(ps_decoder_t *ps, const float *mean, int n, int frames) {
	cmn_t *cmn = vela_cmn(ps);
	for (int i = 0; i < n && i < cmn->veclen; i++) {
		cmn->cmn_mean[i] = mean[i];
		cmn->sum[i] = mean[i] * frames;
	}
	cmn->nframe = frames;
}

static int vela_get_voice(ps_decoder_t *ps, float *mean, int n) {
	cmn_t *cmn = vela_cmn(ps);
	for (int i = 0; i < n && i < cmn->veclen; i++) mean[i] = cmn->cmn_mean[i];
	return cmn->nframe;
}

// vela_process feeds audio and moves the mean along at once. The library alone would do so at the end of an utterance or after eight seconds.
static int vela_process(ps_decoder_t *ps, const int16 *data, size_t n) {
	int frames = ps_process_raw(ps, data, n, 0, 0);
	cmn_live_update(vela_cmn(ps));
	return frames;
}

static ps_decoder_t *vela_open(const char *hmm, const char *lm, const char *dict) {
	cmd_ln_t *config = cmd_ln_init(NULL, ps_args(), TRUE,
		"-hmm", hmm, "-lm", lm, "-dict", dict,
		"-fwdflat", "no",
		"-logfn", "/dev/null",
		NULL);
	if (config == NULL) return NULL;
	ps_decoder_t *ps = ps_init(config);
	cmd_ln_free_r(config); // the decoder keeps its own reference
	return ps;
}
*/
import "C"

import (
	"errors"
	"sync"
	"unsafe"
)

const built = true

// silence the library once: its log goes to standard error otherwise.
var silence = sync.OnceFunc(func() { C.vela_quiet() })

// sphinx is one decoder of the library. One goroutine uses it at a time.
type sphinx struct {
	ps       *C.ps_decoder_t
	stranger voice // what the model begins with
}

// loadDecoder reads the model from disk; about 0.3 s and 93 MB. It may be called from several goroutines at once.
func loadDecoder(m model) (decoder, error) {
	silence()
	hmm, lm, dict := C.CString(m.acoustic), C.CString(m.language), C.CString(m.dictionary)
	defer C.free(unsafe.Pointer(hmm))
	defer C.free(unsafe.Pointer(lm))
	defer C.free(unsafe.Pointer(dict))
	ps := C.vela_open(hmm, lm, dict)
	if ps == nil {
		return nil, errors.New("pocketsphinx: the library refused the model in " + m.acoustic)
	}
	s := &sphinx{ps: ps}
	s.stranger = voice{mean: s.voice().mean, frames: strangerFrames}
	return s, nil
}

func (s *sphinx) start(v voice) error {
	if C.ps_start_stream(s.ps) < 0 {
		return errors.New("pocketsphinx: start stream")
	}
	if v.frames == 0 {
		v = s.stranger
	}
	C.vela_set_voice(s.ps, (*C.float)(&v.mean[0]), C.int(len(v.mean)), C.int(v.frames))
	return s.begin()
}

func (s *sphinx) voice() (v voice) {
	v.frames = int(C.vela_get_voice(s.ps, (*C.float)(&v.mean[0]), C.int(len(v.mean))))
	return v
}

func (s *sphinx) begin() error {
	if C.ps_start_utt(s.ps) < 0 {
		return errors.New("pocketsphinx: start utterance")
	}
	return nil
}

func (s *sphinx) process(samples []int16) error {
	if len(samples) == 0 {
		return nil
	}
	data := (*C.int16)(unsafe.Pointer(unsafe.SliceData(samples)))
	if C.vela_process(s.ps, data, C.size_t(len(samples))) < 0 {
		return errors.New("pocketsphinx: process audio")
	}
	return nil
}

func (s *sphinx) speaking() bool { return C.ps_get_in_speech(s.ps) != 0 }

func (s *sphinx) hypothesis() string {
	hyp := C.ps_get_hyp(s.ps, nil)
	if hyp == nil {
		return ""
	}
	return C.GoString(hyp)
}

func (s *sphinx) end() error {
	if C.ps_end_utt(s.ps) < 0 {
		return errors.New("pocketsphinx: end utterance")
	}
	return nil
}

func (s *sphinx) free() { C.ps_free(s.ps) }
