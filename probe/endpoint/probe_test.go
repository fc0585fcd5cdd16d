package endpoint_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

func TestTitleSaysWhatIsProbed(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]endpoint.Endpoint{
		"tcp 127.0.0.1:6379":                  {TCP: &endpoint.TCP{Address: "127.0.0.1:6379"}},
		"grpc 127.0.0.1:9000/shop.Cart":       {GRPC: &endpoint.GRPC{Address: "127.0.0.1:9000", Service: "shop.Cart"}},
		"file /data/state":                    {File: &endpoint.File{Path: "/data/state"}},
		"exec [redis-cli ping]":               {Exec: &endpoint.Exec{Command: []string{"redis-cli", "ping"}}},
		"process":                             {Process: &process.Config{Comm: "game"}},
		"http://127.0.0.1/, whatever else is": {Name: "http://127.0.0.1/, whatever else is", TCP: &endpoint.TCP{Address: "a:1"}},
	} {
		if got := e.Title(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Times that an endpoint does not set are taken from all endpoints, or else from the defaults; many probes do not run
// at the same moment.
func TestTimesOfAnEndpoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own, all                endpoint.Times
		delay, interval, jitter time.Duration
	}{
		"nobody says it":      {endpoint.Times{}, endpoint.Times{}, 30 * time.Second, 5 * time.Second, 5 * time.Second},
		"it is said of all":   {endpoint.Times{}, endpoint.Times{StartDelaySeconds: 1, ProbeIntervalSeconds: 60}, time.Second, time.Minute, 5 * time.Second},
		"and of this one":     {endpoint.Times{ProbeIntervalSeconds: 2}, endpoint.Times{StartDelaySeconds: 1, ProbeIntervalSeconds: 60}, time.Second, 2 * time.Second, 2 * time.Second},
		"less than is usable": {endpoint.Times{ProbeIntervalSeconds: -1}, endpoint.Times{StartDelaySeconds: -1}, 30 * time.Second, 5 * time.Second, 5 * time.Second},
	} {
		e := endpoint.Endpoint{Times: tt.own, TCP: &endpoint.TCP{Address: "127.0.0.1:1"}}
		spec, err := e.Spec(tt.all, plugin.Host{})
		if err != nil || spec.StartDelay != tt.delay || spec.Period != tt.interval || spec.Jitter != tt.jitter || spec.Timeout != 10*time.Second {
			t.Errorf("%s: %+v, %v", name, spec.Timing, err)
		}
	}
}

// What is answered has to be what is expected, as text and as a value of a type.
func TestAnotherResultIsAFailure(t *testing.T) {
	t.Parallel()
	const ok, failed = probe.Succeeded, probe.Failed
	for name, tt := range map[string]struct {
		content string
		change  func(*endpoint.Endpoint)
		want    probe.State
		says    string
	}{
		"the expected":              {"idle", func(e *endpoint.Endpoint) { e.ExpectedResult = "idle" }, ok, "idle"},
		"another":                   {"busy", func(e *endpoint.Endpoint) { e.ExpectedResult = "idle" }, failed, `result "busy", want "idle"`},
		"nothing is expected":       {"busy", func(*endpoint.Endpoint) {}, ok, "busy"},
		"a path alone":              {`{"a": "x"}`, field("a", "", nil), ok, "x"},
		"a value":                   {`{"a": "x"}`, field("a", "", "x"), ok, "x"},
		"another value":             {`{"a": "y"}`, field("a", "", "x"), failed, `result "y", want "x"`},
		"a value that is no text":   {`{"a": 3}`, field("a", "", 3), ok, "3"},
		"another number":            {`{"a": 4}`, field("a", "int", 3), failed, `result "4", want "3"`},
		"no number":                 {`{"a": "x"}`, field("a", "int", nil), failed, `result "x" is no number`},
		"a boolean":                 {`{"a": false}`, field("a", "bool", nil), ok, "false"},
		"the other boolean":         {`{"a": true}`, field("a", "bool", nil), ok, "true"},
		"no boolean":                {`{"a": "maybe"}`, field("a", "bool", nil), failed, `result "maybe" is no boolean`},
		"a value that is not known": {`{"a": "x"}`, field("a", "", func() {}), probe.Unknown, "json: unsupported type: func()"},
	} {
		file := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		e := endpoint.Endpoint{File: &endpoint.File{Path: file}}
		tt.change(&e)
		prober, err := e.Prober(plugin.Host{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(probe.Outcome{State: tt.want, Message: tt.says}, prober.Probe(t.Context())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		probe.Close(prober)
	}
}

func field(path, kind string, value any) func(*endpoint.Endpoint) {
	return func(e *endpoint.Endpoint) {
		e.JSONPathConfig = &endpoint.JSONPath{JSONPath: path, FieldType: kind, Value: value}
	}
}

// The reason of a probe that has failed is its own, and not that it is another result.
func TestAFailureKeepsItsReason(t *testing.T) {
	t.Parallel()
	e := endpoint.Endpoint{File: &endpoint.File{Path: filepath.Join(t.TempDir(), "none")}, ExpectedResult: "idle"}
	bare := endpoint.Endpoint{File: e.File}
	var got []probe.Outcome
	for _, one := range []endpoint.Endpoint{bare, e} {
		prober, err := one.Prober(plugin.Host{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, prober.Probe(t.Context()))
		probe.Close(prober)
	}
	if got[0].State != probe.Failed || got[0] != got[1] {
		t.Errorf("%+v, expecting something %+v", got[0], got[1])
	}
}

func TestAProcessIsAnEndpoint(t *testing.T) {
	t.Parallel()
	e := endpoint.Endpoint{Process: &process.Config{Comm: "game"}}
	prober, err := e.Prober(plugin.Host{})
	if _, ok := prober.(probe.Process); err != nil || !ok {
		t.Errorf("%T, %v", prober, err)
	}
}
