package gateway

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/silero"
	"vela/session/speech"
)

// detectors tell speech from everything else, where clients want that done for them: Silero, and what this program has of
// its own where Silero is not there.
type detectors struct {
	files silero.Files
	vad   protocol.VAD // what clients get that do not say
	load  func() (*silero.Engine, error)
	log   *slog.Logger
}

func newDetectors(files silero.Files, vad protocol.VAD, log *slog.Logger) *detectors {
	d := &detectors{files: files, vad: vad, log: log.With("component", "detectors")}
	d.load = sync.OnceValues(d.open)
	return d
}

// open loads Silero, which takes about a tenth of a second: before the first who is hands-free, or by whoever asks.
func (d *detectors) open() (*silero.Engine, error) {
	start := time.Now()
	e, err := silero.New(d.files)
	if err != nil {
		d.log.Info("speech is detected by its loudness", "reason", err)
		return nil, err
	}
	d.log.Info("detector loaded", "engine", silero.Label, "ms", time.Since(start).Milliseconds())
	return e, nil
}

// stream makes a detector of one stream.
func (d *detectors) stream() session.VoiceDetector {
	e, err := d.load()
	if err != nil {
		return speech.NewEnergyDetector()
	}
	return &detector{best: e.Stream(), spare: speech.NewEnergyDetector(), log: d.log}
}

// mayFail is a detector that may.
type mayFail interface {
	Speech(frame []int16) (float32, error)
}

// detector is Silero, and the spare one once it fails.
type detector struct {
	best  mayFail // nil once it has failed
	spare *speech.EnergyDetector
	log   *slog.Logger
}

// Speech implements [session.VoiceDetector].
func (d *detector) Speech(frame []int16) float32 {
	if d.best != nil {
		likely, err := d.best.Speech(frame)
		if err == nil {
			return likely
		}
		d.log.Error("the detector failed; loudness decides for the rest of this session", "error", err)
		d.best = nil
	}
	return d.spare.Speech(frame)
}

// energyLabel is what people are shown as the name of the spare detector.
const energyLabel = "Loudness and pitch"

// report says which detectors there are. The first that is available is at work.
func (d *detectors) report() []Engine {
	best := Engine{Name: "silero", Label: silero.Label, Available: true}
	spare := Engine{Name: "energy", Label: energyLabel, Available: true}
	if _, err := d.load(); err != nil {
		best.Available, best.Why, best.Cause = false, whyNoSilero(err), err
		spare.Better = "It takes music and other people's voices for speech, and misses the shortest words. Silero is better: make build puts it beside the program."
	}
	return []Engine{best, spare}
}

// whyNoSilero says what to do, without the paths that the error may name.
func whyNoSilero(err error) string {
	switch {
	case errors.Is(err, silero.ErrNotBuilt):
		return "This build cannot use it. Build with cgo."
	case errors.Is(err, silero.ErrNoLibrary):
		return "The library of ONNX Runtime is missing. Run make build, or name it with --onnxruntime."
	case errors.Is(err, silero.ErrNoModel):
		return "The model is missing. Run make build, or name it with --silero."
	}
	return "It cannot be used here. Run vela engines to see why."
}
