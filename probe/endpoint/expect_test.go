package endpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

// What an endpoint is asked for decides whether its result is a success.
func TestResultsAreWhatIsExpected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"on":true,"off":false,"n":12,"text":"true story"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		json   *endpoint.JSONPath
		result string // expectedResult
		want   probe.State
	}{
		"nothing is expected":             {&endpoint.JSONPath{JSONPath: "on"}, "", probe.Succeeded},
		"true is a boolean":               {&endpoint.JSONPath{JSONPath: "on", FieldType: "boolean"}, "", probe.Succeeded},
		"false is a boolean":              {&endpoint.JSONPath{JSONPath: "off", FieldType: "boolean"}, "", probe.Succeeded},
		"text is no boolean":              {&endpoint.JSONPath{JSONPath: "text", FieldType: "boolean"}, "", probe.Failed},
		"a number":                        {&endpoint.JSONPath{JSONPath: "n", FieldType: "number"}, "", probe.Succeeded},
		"text is no number":               {&endpoint.JSONPath{JSONPath: "text", FieldType: "number"}, "", probe.Failed},
		"the value":                       {&endpoint.JSONPath{JSONPath: "n", Value: 12}, "", probe.Succeeded},
		"another value":                   {&endpoint.JSONPath{JSONPath: "n", Value: 13}, "", probe.Failed},
		"the value, of the type":          {&endpoint.JSONPath{JSONPath: "on", FieldType: "boolean", Value: true}, "", probe.Succeeded},
		"another value of the type":       {&endpoint.JSONPath{JSONPath: "on", FieldType: "boolean", Value: false}, "", probe.Failed},
		"the result":                      {&endpoint.JSONPath{JSONPath: "text"}, "true story", probe.Succeeded},
		"another result":                  {&endpoint.JSONPath{JSONPath: "text"}, "true", probe.Failed},
		"nothing is there to be compared": {&endpoint.JSONPath{JSONPath: "none", FieldType: "number"}, "", probe.Unknown},
		"without a path":                  {nil, "true", probe.Failed},
	} {
		e := endpoint.Endpoint{File: &endpoint.File{Path: path}, JSONPathConfig: tt.json, ExpectedResult: tt.result}
		prober, err := e.Prober(plugin.Host{})
		if err != nil {
			t.Fatal(err)
		}
		if got := prober.Probe(t.Context()); got.State != tt.want {
			t.Errorf("%s: %s %q, want %s", name, got.State, got.Message, tt.want)
		}
		probe.Close(prober)
	}
}
