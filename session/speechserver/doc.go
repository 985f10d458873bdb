// Package speechserver speaks and recognises with servers over HTTP, on this machine or elsewhere.
//
//	                    speech to text                                text to speech
//	OpenAI-compatible   [OpenAITranscriber]  /audio/transcriptions    [OpenAISynthesizer]  /audio/speech
//	whisper.cpp         [WhisperTranscriber] /inference
//	Piper                                                             [PiperSynthesizer]   /synthesize
//
// Start at [Config] and one of these four. What is common to all is in client.go: limits of time, one more try where no connection came about, and
// errors that name neither the server nor the key.
package speechserver
