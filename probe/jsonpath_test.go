package probe_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/refit-project/refit/probe"
)

// The paths of the reference implementation are in the syntax of GJSON; those with braces or $ are kubectl's.
func TestJSONPathsOfBothSyntaxes(t *testing.T) {
	t.Parallel()
	const document = `{"state":"idle","n":12345678901234567890,"ok":true,"none":null,
		"players":[{"id":1,"name":"a"},{"id":2,"name":"b c"}],"a.b":"dotted","o":{"x": 1}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, document) }))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"state": "idle", "n": "12345678901234567890", "ok": "true", "players.#": "2", "players.1.name": "b c",
		"players.#(id==2).name": "b c", `players.#.id`: "[1,2]", `a\.b`: "dotted", "o": `{"x": 1}`, ".state": "idle",
		"{.players[1].name}": "b c", "$.state": "idle", "{.players[*].id}": "1 2",
	} {
		p, err := probe.NewHTTP(probe.HTTPConfig{URL: server.URL, JSONPath: path})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		check(t, once(t, p, time.Minute), probe.Succeeded, want)
	}
	for _, path := range []string{"missing", "players.7", "{.missing}"} {
		p, err := probe.NewHTTP(probe.HTTPConfig{URL: server.URL, JSONPath: path})
		if err != nil {
			t.Fatal(err)
		}
		if got := once(t, p, time.Minute); got.State != probe.Unknown {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
