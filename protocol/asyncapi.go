package protocol

// AsyncAPI is the document.
var AsyncAPI []byte
