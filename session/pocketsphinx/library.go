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
type sphinx struct{ ps *C.ps_decoder_t }

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
	return &sphinx{ps: ps}, nil
}

func (s *sphinx) start() error {
	if C.ps_start_stream(s.ps) < 0 {
		return errors.New("pocketsphinx: start stream")
	}
	return s.begin()
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
	if C.ps_process_raw(s.ps, data, C.size_t(len(samples)), 0, 0) < 0 {
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
