package plugin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/plugin/config"
)

// A plugin that waits for values of the pod is not started, holds up readiness for a while, and starts with a configuration
// that has them.
func TestPluginWaitsForValuesOfThePod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiting := config.Plugin{Name: "a", Text: "x", Awaits: errors.New("${POD:ROOM}")}
		s := newStage(t, config.File{Plugins: []config.Plugin{waiting, {Name: "b"}}}, plain("a"), plain("b"))
		s.start(t)
		s.check(t, "init b", "start b")
		status, err := s.statusOf("a")
		if err != nil || status.Running || !strings.Contains(status.Message, "${POD:ROOM}") {
			t.Errorf("status %+v, %v", status, err)
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a", http.NoBody)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("it answers %d", w.Code)
		}
		time.Sleep(5*time.Minute - time.Second)
		if s.Ready() {
			t.Error("ready before it could start")
		}
		time.Sleep(time.Second)
		if !s.Ready() {
			t.Error("not ready although the time is up")
		}
		waiting.Awaits = nil
		if err := s.LoadConfig(t.Context(), &config.File{Plugins: []config.Plugin{waiting, {Name: "b"}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.check(t, "init a", "start a")
		if !s.running(t, "a") || !s.Ready() {
			t.Error("it does not run")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
