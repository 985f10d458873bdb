module vela/e2e

go 1.26.0

require nhooyr.io/websocket v1.8.17
