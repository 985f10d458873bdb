package bus

const helperVar = "VELA_BUS_TEST_HELPER"

var helpers = map[string]func() error{}
