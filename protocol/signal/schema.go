package signal

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a signal's envelope and of the well-known payloads.
func Schema() []byte { return append([]byte(nil), schema...) }
