# Vela. `make run` is the product, `make test` the proof; both set up what they need.

# Speech recognition and Opus, which rooms need for their sound, are in the build where their libraries are; without them everything else runs.
TAGS  := $(shell pkg-config --exists pocketsphinx 2>/dev/null && echo pocketsphinx) \
	$(shell pkg-config --exists opus 2>/dev/null && echo opus nolibopusfile)
# sherpa-onnx is in a build that asks for it: SHERPA=1. Its libraries, 32 MB, are put beside the program.
TAGS  += $(if $(SHERPA),sherpa)
ADDR  ?= $(if $(LAN),0.0.0.0:8443,127.0.0.1:8080)
TURNS ?= agent
GO    := go

FUZZTIME ?= 60s

# What detects speech stands beside the program. It comes from Go modules, whose sums stand in go.sum: the
# library that sherpa-onnx brings along, and the model, which go.mod names as a tool since no build needs it.
MACHINE  := $(if $(filter Linux,$(shell uname -s)),$(filter x86_64 aarch64,$(shell uname -m)))
DETECTOR := $(if $(MACHINE),bin/libonnxruntime.so bin/silero_vad.onnx)

# LAN=1 lets phones in: with TLS, and with a server key of this run's own unless VELA_KEYS has one.
LAN_KEY   = $(if $(LAN),VELA_KEYS="$${VELA_KEYS:-$$(./bin/vela key)}")
LAN_FLAGS = $(if $(LAN),--auth keys --tls self --invite $$(test -t 1 && echo qr || echo link))

# LIVEKIT=1 starts a development server beside the gateway, and ends it with it. With LAN=1 phones in the network reach it,
# so that its secret is of this run alone; elsewhere it is that of make livekit.
LIVEKIT_SECRET = $(if $(LAN),$$(od -An -tx1 -N24 /dev/urandom | tr -d ' \n'),devsecret-devsecret-devsecret-32b)
LIVEKIT_START  = $(if $(LIVEKIT),secret="$(LIVEKIT_SECRET)"; LIVEKIT_KEYS="devkey: $$secret" \
	./bin/livekit-server --config e2e/livekit/$(if $(LAN),lan.yaml --node-ip "$${LAN_IP:-$$(hostname -I | cut -d' ' -f1)}",server.yaml) & trap "kill $$! 2>/dev/null" EXIT INT TERM;)
LIVEKIT_ENV    = $(if $(LIVEKIT),LIVEKIT_URL=ws://127.0.0.1:7880 LIVEKIT_API_KEY=devkey LIVEKIT_API_SECRET="$$secret")

.DEFAULT_GOAL := help
.PHONY: help run build livekit test check test-go test-web test-e2e e2e-openclaw e2e-claude bench bench-speech fuzz generate clean packages packages-test

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

run: packages ## Set up, build and start the gateway: hold the button on its page and talk (ADDR=, TURNS=, LAN=1 for phones, LIVEKIT=1 for rooms)
	@$(MAKE) --no-print-directory build $(if $(LIVEKIT),bin/livekit-server)
	@$(LIVEKIT_START) $(LAN_KEY) $(LIVEKIT_ENV) ./bin/vela serve --addr $(ADDR) --turns $(TURNS) $(LAN_FLAGS)

build: web/dist/index.html $(DETECTOR) ## Build the page and the program, bin/vela (SHERPA=1 with sherpa-onnx)
	$(GO) build -tags '$(TAGS)' -o bin/vela ./gateway/cmd/vela
	$(if $(SHERPA),cd "$$($(GO) list -m -f '{{.Dir}}' github.com/k2-fsa/sherpa-onnx-go-linux)"/lib/$$(uname -m)* && install -m 644 -t $(CURDIR)/bin libonnxruntime.so libsherpa-onnx-c-api.so)

livekit: bin/livekit-server ## Build the real LiveKit server and start it on loopback, for development: port 7880, key devkey
	./bin/livekit-server --config e2e/livekit/server.yaml

test: packages packages-test ## Set up and run every test
	@$(MAKE) --no-print-directory check test-web build test-go test-e2e

check: ## Formatting, vet, tidiness, a build without cgo
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet -tags '$(TAGS)' ./...
	cd e2e && $(GO) vet -tags '$(TAGS)' ./...
	$(GO) mod tidy -diff
	cd e2e && $(GO) mod tidy -diff
	CGO_ENABLED=0 $(GO) build ./...

test-go: $(DETECTOR) ## The Go tests, with the race detector
	$(GO) test -race -timeout 20m -tags '$(TAGS)' ./...

test-web: web/node_modules ## The page's unit tests and types
	cd web && npm run --silent typecheck && npm test --silent

test-e2e: build bin/livekit-server e2e/node_modules ## The built program from outside: scripted turns, a real browser
	cd e2e && $(GO) test -race -count=1 -timeout 20m ./...

e2e-openclaw: build ## The built program against the real OpenClaw, which is installed first: 850 MB, some minutes
	cd e2e && $(GO) run ./openclaw -results openclaw/RESULTS.md

e2e-claude: build ## The built program's hooks in the real Claude Code, which is installed first
	cd e2e && $(GO) run ./claude -results claude/RESULTS.md

bench: build e2e/node_modules $(if $(filter opus,$(TAGS)),bin/livekit-server) ## Measure beside a bare server, and print ratios
	cd e2e && $(GO) build -tags '$(TAGS)' -o ../bin/ ./bench/...
	./bin/bench -vela bin/vela -bare bin/bare -model bin/model -speech bin/speech
	$(if $(filter opus,$(TAGS)),./bin/rooms -vela bin/vela -livekit bin/livekit-server,@echo "rooms are not measured: this build is without Opus")
	@echo "an event on its way out: handed over only (the floor), numbered and kept, journaled as well"
	@$(GO) test ./session -run '^$$' -bench 'Emit|Append' -benchmem | grep ^Benchmark
	@echo "a signal from its source through the log and five filters to who follows, on one core (the floor is decoding and encoding its JSON; aim: at most 3 times it)"
	@$(GO) test ./gateway -run '^$$' -bench Signal -benchmem -cpu 1 | grep ^Benchmark
	@echo "an event appended to the store of --data"
	@$(GO) test ./gateway/bus -run '^$$' -bench Append -benchmem | grep ^Benchmark
	@echo "40 ms of sound on its way (the floor is their encoding), a session that speaks, and 10 MB of text to speak"
	@$(GO) test ./session -run '^$$' -bench 'Sound|Speak' -benchmem | grep ^Benchmark
	@echo "telling speech from silence, for each 32 ms of an open microphone"
	@$(GO) test ./session/silero -run '^$$' -bench Silero -benchmem | grep ^Benchmark
	@cd e2e && VELA_BIN=../bin/vela node bench/page.mjs

bench-speech: packages-test build ## Count the words that every ear gets wrong, clean and with noise (CONFIG=vela.yaml for your own ears)
	cd e2e && $(GO) build -o ../bin/ ./bench/wer
	@./bin/wer -vela bin/vela -config '$(CONFIG)'

fuzz: ## Fuzz whatever reads bytes from outside, FUZZTIME= each (a minute)
	@for pkg in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
		echo "$$pkg $$f" && $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
	done; done

generate: ## Write again what comes out of the Go types and tables
	$(GO) test -short -tags '$(TAGS)' $$(grep -rl --include=*_test.go 'flag.Bool("update"' protocol session turn gateway | xargs -n1 dirname | sort -u | sed s,^,./,) -update

clean: ## Remove what was built
	rm -rf bin web/dist/assets web/dist/index.html web/node_modules e2e/node_modules

# Where they cannot be had the program runs all the same, and says what is missing.
bin/libonnxruntime.so: go.mod
	-@$(call fetch,github.com/k2-fsa/sherpa-onnx-go-linux,lib/$(MACHINE)-unknown-linux-gnu/libonnxruntime.so)

bin/silero_vad.onnx: go.mod
	-@$(call fetch,github.com/streamer45/silero-vad-go,testfiles/silero_vad.onnx)

fetch = mkdir -p bin && $(GO) mod download $(1) && install -m 644 "$$($(GO) list -m -f '{{.Dir}}' $(1))/$(2)" $@

packages:
	@.ci/packages run

packages-test:
	@.ci/packages test

# A module of its own: what the server needs, nothing of Vela's may depend on. The first time it takes minutes.
bin/livekit-server: e2e/livekit/go.mod e2e/livekit/go.sum
	cd e2e/livekit && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../$@ github.com/livekit/livekit-server/cmd/server

web/node_modules: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/index.html: web/node_modules $(shell find web/src web/public web/protocol web/index.html web/vite.config.ts -type f -not -path '*/node_modules/*' 2>/dev/null)
	cd web && npm run --silent build

e2e/node_modules: e2e/package-lock.json
	cd e2e && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
