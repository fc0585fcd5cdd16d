package inpod_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// The sidecar was killed during an update: the next one undoes it and reloads the program, and no update is under way then.
func TestNoUpdateIsUnderWayAfterAnInterruptedOne(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	configuration := "loadPatchType: request\nrequest: {url: '" + app.URL + "'}\n"
	s := newStage(t).run(configuration)
	s.accept("v1", "/a", "A1")
	s.accept("v2", "/a", "A2")
	s.stop()
	state := filepath.Join(s.dir, "..refit/state.json")
	var stored map[string]any
	text, err := os.ReadFile(state)
	if err := errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
		t.Fatal(err)
	}
	stored["pending"] = stored["accepted"].([]any)[1] // of v1, as during a rollback
	text, err = json.Marshal(stored)
	if err := errors.Join(err, os.WriteFile(state, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.run(configuration)
	info, _ := s.plugin.Status().Info.(map[string]any)
	update, _ := info["update"].(hotupdate.Status)
	if update.Phase != hotupdate.Accepted || update.Version != "v2" {
		t.Errorf("status %+v", update)
	}
	s.check("a", "A2")
}
