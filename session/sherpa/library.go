//go:build cgo && sherpa && linux

package sherpa

// The library is looked for beside the program first to last: make build SHERPA=1 puts it there. The module names its own folder
// in the module cache as well.

// #cgo LDFLAGS: -Wl,-rpath,$ORIGIN
import "C"

import (
	"path/filepath"

	onnx "github.com/k2-fsa/sherpa-onnx-go-linux"

	"vela/session/speech"
)

const built = true

// threads are those of one utterance: more of them cost more than they save.
const threads = 1

var features = onnx.FeatureConfig{SampleRate: speech.Rate, FeatureDim: 80}

// load reads the model from disk. The library returns nothing for one that it cannot use, and says why on standard error.
func load(m model, language string) (library, error) {
	if m.kind == streaming {
		r := onnx.NewOnlineRecognizer(&onnx.OnlineRecognizerConfig{
			FeatConfig: features,
			ModelConfig: onnx.OnlineModelConfig{
				Transducer: onnx.OnlineTransducerModelConfig{Encoder: m.encoder, Decoder: m.decoder, Joiner: m.joiner},
				Tokens:     m.tokens, NumThreads: threads, Provider: "cpu",
			},
			DecodingMethod: "greedy_search",
		})
		if r == nil {
			return nil, refused(filepath.Dir(m.encoder))
		}
		return online{r}, nil
	}
	cfg := onnx.OfflineRecognizerConfig{FeatConfig: features, DecodingMethod: "greedy_search"}
	cfg.ModelConfig.Tokens, cfg.ModelConfig.NumThreads, cfg.ModelConfig.Provider = m.tokens, threads, "cpu"
	if m.kind == whisper {
		cfg.ModelConfig.Whisper = onnx.OfflineWhisperModelConfig{Encoder: m.encoder, Decoder: m.decoder, Language: language, Task: "transcribe", TailPaddings: -1}
	} else {
		cfg.ModelConfig.Transducer = onnx.OfflineTransducerModelConfig{Encoder: m.encoder, Decoder: m.decoder, Joiner: m.joiner}
	}
	r := onnx.NewOfflineRecognizer(&cfg)
	if r == nil {
		return nil, refused(filepath.Dir(m.encoder))
	}
	return offline{r}, nil
}

type online struct{ r *onnx.OnlineRecognizer }

func (o online) stream() (stream, error) { return &onlineStream{o.r, onnx.NewOnlineStream(o.r)}, nil }
func (o online) free()                   { onnx.DeleteOnlineRecognizer(o.r) }

type onlineStream struct {
	r *onnx.OnlineRecognizer
	s *onnx.OnlineStream
}

func (o *onlineStream) hear(samples []float32) { o.s.AcceptWaveform(speech.Rate, samples) }

func (o *onlineStream) text() string {
	for o.r.IsReady(o.s) {
		o.r.Decode(o.s)
	}
	return o.r.GetResult(o.s).Text
}

// finish hears half a second of silence, too: the last word needs something behind it.
func (o *onlineStream) finish() string {
	o.hear(make([]float32, speech.Rate/2))
	o.s.InputFinished()
	return o.text()
}

func (o *onlineStream) free() { onnx.DeleteOnlineStream(o.s) }

type offline struct{ r *onnx.OfflineRecognizer }

func (o offline) stream() (stream, error) { return &offlineStream{r: o.r}, nil }
func (o offline) free()                   { onnx.DeleteOfflineRecognizer(o.r) }

// offlineStream takes its samples at once, as the library wants them.
type offlineStream struct {
	r       *onnx.OfflineRecognizer
	samples []float32
}

func (o *offlineStream) hear(samples []float32) { o.samples = append(o.samples, samples...) }
func (o *offlineStream) text() string           { return "" }
func (o *offlineStream) free()                  {}

func (o *offlineStream) finish() string {
	s := onnx.NewOfflineStream(o.r)
	defer onnx.DeleteOfflineStream(s)
	s.AcceptWaveform(speech.Rate, o.samples)
	o.r.Decode(s)
	return s.GetResult().Text
}
