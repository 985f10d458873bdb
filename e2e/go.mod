module vela/e2e

go 1.26.8

require nhooyr.io/websocket v1.8.17
