// Command wer measures how well speech is recognised: it lets flite's voices read sentences aloud, adds noise, has vela hear
// recognise them with every ear that there is, and prints the word error rates as a Markdown table.
//
// Start at run. Sound is made in sound.go, errors are counted in words.go.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed sentences.txt
var text string

// voices are those of flite that recognisers of English can be measured with.
var voices = []string{"slt", "rms", "awb", "kal16"}

func main() {
	vela := flag.String("vela", "bin/vela", "the program")
	config := flag.String("config", "", "vela.yaml with the ears to measure; without it the one that is there by itself")
	most := flag.Int("sentences", 1000, "how many to take, at most")
	flag.Parse()
	if err := run(os.Stdout, *vela, *config, *most); err != nil {
		fmt.Fprintln(os.Stderr, "bench-speech:", err)
		os.Exit(1)
	}
}

// clip is one sentence as it is heard.
type clip struct {
	row  int // of the table
	text string
}

// rows are the conditions: each voice without noise, and all of them, in turn, with noise.
var rows = []struct {
	what  string
	voice int // -1: in turn
	noise func(speech []int16, others [][]int16, seed uint64) []int16
}{
	{"slt", 0, nil}, {"rms", 1, nil}, {"awb", 2, nil}, {"kal16", 3, nil},
	{"white noise at 20 dB", -1, func(s []int16, _ [][]int16, seed uint64) []int16 { return mix(s, white(len(s), seed), 20) }},
	{"white noise at 10 dB", -1, func(s []int16, _ [][]int16, seed uint64) []int16 { return mix(s, white(len(s), seed), 10) }},
	{"three others talk, at 10 dB", -1, func(s []int16, others [][]int16, _ uint64) []int16 { return mix(s, babble(len(s), others), 10) }},
}

func run(out io.Writer, vela, config string, most int) error {
	sentences := strings.Split(strings.TrimSpace(text), "\n")
	sentences = sentences[:min(most, len(sentences))]
	dir, err := os.MkdirTemp("", "bench-speech")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spoken, err := speakAll(dir, sentences)
	if err != nil {
		return err
	}
	clips := map[string]clip{}
	args := []string{"hear", "--json"}
	if config != "" {
		args = append(args, "--config", config)
	}
	for r, row := range rows {
		for i, sentence := range sentences {
			voice := row.voice
			if voice < 0 {
				voice = i % len(voices)
			}
			samples := spoken[voice][i]
			if row.noise != nil {
				samples = row.noise(samples, othersOf(spoken, voice, i), uint64(i))
			}
			name := filepath.Join(dir, fmt.Sprintf("%d-%d.wav", r, i))
			if err := os.WriteFile(name, wav(samples), 0o600); err != nil {
				return err
			}
			clips[name] = clip{r, sentence}
			args = append(args, name)
		}
	}
	return hearAll(out, vela, args, clips)
}

// speakAll has every voice speak every sentence.
func speakAll(dir string, sentences []string) ([][][]int16, error) {
	spoken := make([][][]int16, len(voices))
	name := filepath.Join(dir, "spoken.wav")
	for v, voice := range voices {
		for _, sentence := range sentences {
			if said, err := exec.Command("flite", "-voice", voice, "-t", sentence, "-o", name).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("flite: %w: %s", err, said)
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			samples, err := samplesOf(b)
			if err != nil {
				return nil, fmt.Errorf("flite, voice %s: %w", voice, err)
			}
			spoken[v] = append(spoken[v], samples)
		}
	}
	return spoken, nil
}

// othersOf are three other sentences, each by another voice.
func othersOf(spoken [][][]int16, voice, sentence int) (others [][]int16) {
	for k := 1; k < len(spoken); k++ {
		of := spoken[(voice+k)%len(spoken)]
		others = append(others, of[(sentence+7*k)%len(of)])
	}
	return others
}

// result is what vela hear prints for one file.
type result struct {
	Ear, File, Text, Error string
	SpeechMs, TookMs       int64
}

// tally is what has been counted of one ear.
type tally struct {
	ear            string
	errors, words  [10]int // by row
	speech, took   int64   // ms
	failed, number int
}

func hearAll(out io.Writer, vela string, args []string, clips map[string]clip) error {
	cmd := exec.Command(vela, args...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil && len(b) == 0 {
		return fmt.Errorf("%s hear: %w", vela, err)
	}
	var ears []*tally
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s hear: %w", vela, err)
		}
		c, ok := clips[r.File]
		if !ok {
			return fmt.Errorf("%s hear: nobody asked for %s", vela, r.File)
		}
		if len(ears) == 0 || ears[len(ears)-1].number == len(clips) {
			ears = append(ears, &tally{ear: r.Ear})
		}
		ears[len(ears)-1].count(r, c)
	}
	return table(out, ears)
}

func (t *tally) count(r result, c clip) {
	t.number++
	t.speech, t.took = t.speech+r.SpeechMs, t.took+r.TookMs
	if r.Error != "" {
		t.failed++
		return
	}
	said := words(c.text)
	t.words[c.row] += len(said)
	t.errors[c.row] += distance(said, words(r.Text))
}

func table(out io.Writer, ears []*tally) error {
	var b strings.Builder
	b.WriteString("| spoken by flite | words |")
	for _, t := range ears {
		fmt.Fprintf(&b, " %s |", t.ear)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(ears)) + "\n")
	for r, row := range rows {
		if len(ears) == 0 {
			break
		}
		fmt.Fprintf(&b, "| %s | %d |", row.what, ears[0].words[r])
		for _, t := range ears {
			fmt.Fprintf(&b, " %s |", percent(t.errors[r], t.words[r]))
		}
		b.WriteString("\n")
	}
	b.WriteString("| time taken, for each second of speech | – |")
	for _, t := range ears {
		fmt.Fprintf(&b, " %.2f s |", float64(t.took)/float64(max(1, t.speech)))
	}
	b.WriteString("\n")
	for _, t := range ears {
		if t.failed > 0 {
			fmt.Fprintf(&b, "\n%s failed on %d of %d sentences, which are not counted.\n", t.ear, t.failed, t.number)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func percent(errors, words int) string {
	if words == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(errors)/float64(words))
}
