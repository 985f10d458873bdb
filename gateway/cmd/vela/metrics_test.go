package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"vela/gateway/bus"
	"vela/gateway/feed"
	"vela/gateway/room"
	"vela/gateway/server"
	"vela/gateway/source"
	"vela/gateway/webhook"
	"vela/session"
)

// described is what a [prometheus.Desc] says of itself; it has no other way.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]+)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// metrics is the table of what Vela's packages register; Go and the process add what they always do.
func metrics(t *testing.T) string {
	r := prometheus.NewRegistry()
	session.NewMetrics(r)
	room.NewMetrics(r)
	source.NewMetrics(r)
	bus.NewMetrics(r)
	feed.NewMetrics(r)
	webhook.NewMetrics(r)
	if _, err := server.New(server.Config{Metrics: r}); err != nil {
		t.Fatal(err)
	}
	all := make(chan *prometheus.Desc)
	go func() { defer close(all); r.Describe(all) }()
	var rows []string
	for d := range all {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := "–"
		if m[3] != "" {
			labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", m[1], kind(m[1]), labels, m[2]))
	}
	slices.Sort(rows)
	return "| metric | kind | labels | what |\n| --- | --- | --- | --- |\n" + strings.Join(rows, "\n")
}

// kind is what the name of a metric promises; TestNamesOfMetricsSayTheirKind holds it to that.
func kind(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds"):
		return "histogram"
	}
	return "gauge"
}

func TestNamesOfMetricsSayTheirKind(t *testing.T) {
	r := prometheus.NewRegistry()
	session.NewMetrics(r)
	room.NewMetrics(r)
	source.NewMetrics(r)
	bus.NewMetrics(r)
	feed.NewMetrics(r)
	webhook.NewMetrics(r)
	if _, err := server.New(server.Config{Metrics: r}); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(families, err)
	}
	for _, f := range families {
		if got := strings.ToLower(f.GetType().String()); got != kind(f.GetName()) {
			t.Errorf("%s is a %s", f.GetName(), got)
		}
	}
}
