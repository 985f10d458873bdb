package protocol

import _ "embed"

// AsyncAPI is the contract as an AsyncAPI 3.0 document, for machines. It is served at /asyncapi.yaml. A test writes it
// from the tables of this package.
//
//go:embed asyncapi.yaml
var AsyncAPI []byte
