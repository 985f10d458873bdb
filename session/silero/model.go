//go:build cgo

package silero

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"vela/session/speech"
)

const built = true

// What the model takes and returns.
const (
	before    = 64      // samples that stand before each frame once more
	stateSize = 2 * 128 // of the model's memory, in floats
)

// Engine is the model, loaded once and shared by all streams: about 37 MB. Its methods may be called from any goroutine.
// There is no way to unload it: ONNX Runtime lives as long as the process.
type Engine struct {
	session *ort.DynamicAdvancedSession
	idle    chan *run // at most one a CPU: more would only wait for each other
	room    chan struct{}
}

// run is what one call of the model needs. The library reads and writes Go's memory, which the tensors keep alive.
type run struct {
	frame, state, speech, next *ort.Tensor[float32]
	rate                       *ort.Scalar[int64]
	in, out                    []ort.Value
}

// environment is ONNX Runtime's, of which a process has one.
var environment struct {
	sync.Mutex
	library string // that was opened
}

// open loads the library, once.
func open(library string) error {
	environment.Lock()
	defer environment.Unlock()
	if ort.IsInitialized() {
		if environment.library != library {
			return errors.New("silero: another ONNX Runtime has been loaded by this process")
		}
		return nil
	}
	ort.SetSharedLibraryPath(library)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return fmt.Errorf("silero: open ONNX Runtime: %w", err)
	}
	environment.library = library
	return nil
}

// New loads the library and the model, which takes about 0.1 s. It returns [ErrNotBuilt] in a build without cgo, errors that
// wrap [ErrNoLibrary] or [ErrNoModel] where a file is missing, and what ONNX Runtime says where it refuses them.
func New(f Files) (*Engine, error) {
	f, err := Find(f)
	if err != nil {
		return nil, err
	}
	if err := open(f.Library); err != nil {
		return nil, err
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	defer func() { _ = options.Destroy() }() // the session has its own copy
	// One thread: a frame is too little work to share out, and threads of the library's own would spin while they wait.
	if err := errors.Join(options.SetIntraOpNumThreads(1), options.SetInterOpNumThreads(1)); err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	session, err := ort.NewDynamicAdvancedSession(f.Model, []string{"input", "state", "sr"}, []string{"output", "stateN"}, options)
	if err != nil {
		return nil, fmt.Errorf("silero: load the model: %w", err)
	}
	cpus := runtime.GOMAXPROCS(0)
	e := &Engine{session: session, idle: make(chan *run, cpus), room: make(chan struct{}, cpus)}
	if _, err := e.Stream().Speech(make([]int16, speech.FrameSamples)); err != nil { // another model would say so now
		return nil, err
	}
	return e, nil
}

func newRun() (*run, error) {
	r := &run{}
	tensor := func(into **ort.Tensor[float32], shape ...int64) error {
		t, err := ort.NewEmptyTensor[float32](ort.NewShape(shape...))
		*into = t
		return err
	}
	err := errors.Join(
		tensor(&r.frame, 1, before+speech.FrameSamples),
		tensor(&r.state, 2, 1, stateSize/2),
		tensor(&r.speech, 1, 1),
		tensor(&r.next, 2, 1, stateSize/2),
	)
	if err == nil {
		r.rate, err = ort.NewScalar[int64](speech.Rate)
	}
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	r.in, r.out = []ort.Value{r.frame, r.state, r.rate}, []ort.Value{r.speech, r.next}
	return r, nil
}

// take gives a run to whoever asks: an idle one, a new one, or, where there are enough, the next that is given back.
func (e *Engine) take() (*run, error) {
	select {
	case r := <-e.idle:
		return r, nil
	default:
	}
	select {
	case r := <-e.idle:
		return r, nil
	case e.room <- struct{}{}:
		r, err := newRun()
		if err != nil {
			<-e.room
		}
		return r, err
	}
}

// Stream is a detector of one stream. It needs no end: what it holds is Go's.
func (e *Engine) Stream() *Stream { return &Stream{engine: e} }

// Stream is what the model remembers of one stream. It belongs to one goroutine at a time.
type Stream struct {
	engine *Engine
	tail   [before]float32
	state  [stateSize]float32
}

// Speech is how likely the next frame, of [speech.FrameSamples], is speech: from 0 to 1. It takes about 0.1 ms of CPU. After
// an error the stream may go on, as if the frame had not been.
func (s *Stream) Speech(frame []int16) (float32, error) {
	if len(frame) != speech.FrameSamples {
		return 0, fmt.Errorf("silero: a frame of %d samples: they have %d", len(frame), speech.FrameSamples)
	}
	r, err := s.engine.take()
	if err != nil {
		return 0, err
	}
	defer func() { s.engine.idle <- r }()
	in := r.frame.GetData()
	copy(in, s.tail[:])
	for i, v := range frame {
		in[before+i] = float32(v) / (1 << 15)
	}
	copy(r.state.GetData(), s.state[:])
	if err := s.engine.session.Run(r.in, r.out); err != nil {
		return 0, fmt.Errorf("silero: %w", err)
	}
	copy(s.state[:], r.next.GetData())
	copy(s.tail[:], in[len(in)-before:])
	return r.speech.GetData()[0], nil
}
