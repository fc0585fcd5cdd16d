package entry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

const auditLine = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"u","extra":{"authentication.kubernetes.io/node-name":["node-1"]}},` +
	`"objectRef":{"resource":"pods","namespace":"n","name":"p","subresource":"status"},"responseStatus":{"code":200},` +
	`"responseObject":{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"x"}},"requestReceivedTimestamp":"2026-11-21T10:00:00.000001Z","stageTimestamp":"2026-11-21T10:00:01.5Z"}` + "\n"

func TestParseAudit(t *testing.T) {
	t.Parallel()
	writes, broken, err := entry.ParseAudit("audit.log", strings.NewReader(
		auditLine+`{"stage":"RequestReceived"}`+"\n"+`{"stage":`+auditLine+auditLine+`{"stage":"Resp`))
	if err != nil || broken != 1 || len(writes) != 2 {
		t.Fatalf("ParseAudit() = %d writes, %d broken, %v; want 2, 1 and no error", len(writes), broken, err)
	}
	w := writes[1]
	if w.Number != 4 || w.Node != "node-1" || w.Code != 200 || w.Pod == nil || w.Pod.UID != "x" || w.Done.Sub(w.Received) != 1499999*time.Microsecond {
		t.Errorf("second write %+v", w)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	line := strings.Replace(auditLine, `"verb"`, `"requestURI":"/api/v1/namespaces/n/pods/p/status?dryRun=All&fieldManager=f","verb"`, 1)
	writes, _, err := entry.ParseAudit("audit.log", strings.NewReader(line))
	if err != nil || len(writes) != 1 || writes[0].Pod != nil || writes[0].Code != 200 {
		t.Errorf("ParseAudit() = %+v, %v; want a write without an object", writes, err)
	}
}

func TestParseCalls(t *testing.T) {
	t.Parallel()
	calls, err := entry.ParseCalls("calls.jsonl", strings.NewReader(
		`{"time":"2026-11-21T10:00:00Z","method":"Version","code":"OK"}`+"\n"+
			`{"time":"2026-11-21T10:00:00Z","method":"StopContainer","container_id":"c1","timeout":3,"duration_ms":250.5,"code":"Canceled"}`+"\n"))
	if err != nil || len(calls) != 1 {
		t.Fatalf("ParseCalls() = %v, %v; want one call", calls, err)
	}
	c := calls[0]
	if c.Number != 2 || c.Grace != 3*time.Second || c.End.Sub(c.Begin) != 250500*time.Microsecond || c.Code != "Canceled" {
		t.Errorf("call %+v", c)
	}
}

func TestParseWatched(t *testing.T) {
	t.Parallel()
	watched, err := entry.ParseWatched("watched.jsonl", strings.NewReader(
		`{"time":"2026-11-21T10:00:00Z","event":"ADDED","kind":"EndpointSlice","object":{"metadata":{"namespace":"n","name":"s"},"endpoints":[`+
			`{"targetRef":{"uid":"a"},"conditions":{"ready":true}},{"targetRef":{"uid":"b"},"conditions":{"ready":false}},{"targetRef":{"uid":"c"}}]}}`+"\n"+
			`{"time":"2026-11-21T10:00:01Z","event":"LOST","kind":"EndpointSlice"}`+"\n"))
	if err != nil || len(watched) != 2 || watched[0].Slice == nil || watched[1].Event != entry.WatchLost {
		t.Fatalf("ParseWatched() = %+v, %v; want a slice, and the loss of the watch", watched, err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, entry.ReadyPods(watched[0].Slice)); diff != "" {
		t.Errorf("ready pods (-want +got):\n%s", diff)
	}
	if got, want := watched[0].Line.Text, "ADDED EndpointSlice n/s: 2 ready of 3"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	for _, bad := range []string{`{"event":"ADDED","kind":"EndpointSlice"}`, `{"time":"2026-11-21T10:00:00Z","event":"ADDED","kind":"Ingress","object":{}}`} {
		if _, err := entry.ParseWatched("f", strings.NewReader(bad+"\n")); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestBadLinesAreErrors(t *testing.T) {
	t.Parallel()
	parsers := map[string]func(string) error{
		"calls":   func(s string) error { _, err := entry.ParseCalls("f", strings.NewReader(s)); return err },
		"signals": func(s string) error { _, err := entry.ParseSignals("f", strings.NewReader(s)); return err },
		"faults":  func(s string) error { _, err := entry.ParseFaults("f", strings.NewReader(s)); return err },
		"watched": func(s string) error { _, err := entry.ParseWatched("f", strings.NewReader(s)); return err },
	}
	got := map[string]string{}
	for name, parse := range parsers {
		if err := parse("{}x\n"); err != nil {
			got[name], _, _ = strings.Cut(err.Error(), ": ")
		}
	}
	want := map[string]string{"calls": "read f line 1", "signals": "read f line 1", "faults": "read f line 1", "watched": "read f line 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if err := parsers["faults"](`{"kind":"x","begin":"2026-11-21T10:00:02Z","end":"2026-11-21T10:00:01Z"}` + "\n"); err == nil {
		t.Error("a fault that ends before it begins is accepted")
	}
}
