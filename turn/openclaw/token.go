package openclaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxSettings bounds OpenClaw's file of settings, in bytes.
const maxSettings = 4 << 20

// LocalToken finds the token of the OpenClaw on this machine where OpenClaw's own clients do: in OPENCLAW_GATEWAY_TOKEN,
// or as gateway.auth.token in its settings, whose place OPENCLAW_CONFIG_PATH, OPENCLAW_STATE_DIR and OPENCLAW_HOME move
// (docs/help/environment.md of OpenClaw). It is a [Config.Token] for a [Local] address only.
//
// OpenClaw writes its settings as JSON but also reads JSON5, references to variables and references to secrets. Of these
// a plain token and one variable are understood; for anything else the error says to set the variable. Its words are fit
// for a client; its cause says what is wrong with the file, and not where that lies.
func LocalToken(getenv func(string) string) (string, error) {
	if token := getenv("OPENCLAW_GATEWAY_TOKEN"); token != "" {
		return token, nil
	}
	path, err := settingsPath(getenv)
	if err != nil {
		return "", errNoToken.because(err)
	}
	token, err := readToken(path, getenv)
	if err != nil {
		return "", errNoToken.because(err)
	}
	return token, nil
}

func settingsPath(getenv func(string) string) (string, error) {
	if path := getenv("OPENCLAW_CONFIG_PATH"); path != "" {
		return path, nil
	}
	if dir := getenv("OPENCLAW_STATE_DIR"); dir != "" {
		return filepath.Join(dir, "openclaw.json"), nil
	}
	for _, name := range []string{"OPENCLAW_HOME", "HOME"} {
		if home := getenv(name); home != "" {
			return filepath.Join(home, ".openclaw", "openclaw.json"), nil
		}
	}
	return "", errors.New("openclaw: no home folder to look for its settings in")
}

// variable is a token that stands in a variable, written ${NAME}.
var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

func readToken(path string, getenv func(string) string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("openclaw: read its settings: %w", errors.Unwrap(err)) // without the path: no log has one
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSettings))
	if err != nil {
		return "", fmt.Errorf("openclaw: read its settings: %w", err)
	}
	var settings struct {
		Gateway struct {
			Auth struct {
				Token any `json:"token"`
			} `json:"auth"`
		} `json:"gateway"`
	}
	if err := json.Unmarshal(b, &settings); err != nil { // the error of encoding/json quotes no more than a character
		return "", fmt.Errorf("openclaw: its settings are not plain JSON: %w", err)
	}
	token, _ := settings.Gateway.Auth.Token.(string)
	if m := variable.FindStringSubmatch(strings.TrimSpace(token)); m != nil {
		token = getenv(m[1])
	}
	if token == "" || strings.Contains(token, "${") {
		return "", errors.New("openclaw: its settings hold no token that can be read")
	}
	return token, nil
}
