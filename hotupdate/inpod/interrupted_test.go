package inpod_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
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
	s.interrupt()
	s.run(configuration)
	info, _ := s.plugin.Status().Info.(map[string]any)
	update, _ := info["update"].(hotupdate.Status)
	if update.Phase != hotupdate.Accepted || update.Version != "v2" {
		t.Errorf("status %+v", update)
	}
	s.check("a", "A2")
}

// The program has loaded the files of an update that is undone, and cannot be reloaded at once: it is, when it can be.
func TestProgramIsReloadedAfterAnInterruptedUpdateWhenItCanBe(t *testing.T) {
	t.Parallel()
	var busy atomic.Bool
	var refused, reloaded atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy.Load() {
			refused.Add(1)
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		reloaded.Add(1)
	}))
	t.Cleanup(app.Close)
	configuration := "loadPatchType: request\nrequest: {url: '" + app.URL + "'}\n"
	s := newStage(t).run(configuration)
	s.accept("v1", "/a", "A1")
	s.accept("v2", "/a", "A2")
	s.stop()
	s.interrupt()
	busy.Store(true)
	before := reloaded.Load()
	s.run(configuration)
	s.until("refused", func() bool { return refused.Load() > 0 })
	busy.Store(false)
	s.until("reloaded", func() bool { return reloaded.Load() > before })
	s.check("a", "A2")
	s.until("said", func() bool {
		return s.plugin.Status().Message == "" && s.results.value("hot_update") == "v2: Update success"
	})
}

// interrupt changes the state of a stopped sidecar as if it had been killed during a rollback to its first revision.
func (s *stage) interrupt() {
	s.t.Helper()
	state := filepath.Join(s.dir, "..refit/state.json")
	var stored map[string]any
	text, err := os.ReadFile(state)
	if err := errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
		s.t.Fatal(err)
	}
	stored["pending"] = stored["accepted"].([]any)[1]
	text, err = json.Marshal(stored)
	if err := errors.Join(err, os.WriteFile(state, text, 0o600)); err != nil {
		s.t.Fatal(err)
	}
}
