package inpod_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	hotupdateinpod "github.com/refit-project/refit/hotupdate/inpod"
	"github.com/refit-project/refit/signal"
)

const settings = none + "triggers: [{configMap: settings}]\n"

func withSettings(t *testing.T, data map[string]string) *stage {
	t.Helper()
	s := newStage(t)
	s.api.configMaps["settings"] = data
	return s
}

// withChangedSettings returns a sidecar whose trigger has changed its file after an update by a request, v1, was recorded.
func withChangedSettings(t *testing.T) *stage {
	t.Helper()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.accept("v1", "/mine", "mine")
	s.remembered("v1")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"a": "2"} })
	s.until("changed", func() bool { return s.content("a") == "2" })
	return s
}

// Listing accepted content again does not bring it back after a roll back, also after a restart of the sidecar; a change
// does.
func TestARelistDoesNotUndoARollback(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.check("a", "1")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"a": "2"} })
	s.until("changed", func() bool { return s.content("a") == "2" })
	s.until("rolled back", func() bool { code, _ := s.postJSON("/rollback", `{}`); return code == http.StatusOK })
	s.check("a", "1")
	s.relist(func(*apiServer) {})
	s.check("a", "1")
	s.stop()
	s.run(settings)
	s.check("a", "1")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"a": "3"} })
	s.until("changed again", func() bool { return s.content("a") == "3" })
}

// Keys that were deleted from a ConfigMap disappear, all of them too; files of others stay.
func TestDeletedKeysDisappear(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1", "b": "1", "c": "1"}).run(settings)
	s.accept("v1", "/mine", "mine")
	s.accept("v2", "/c", "taken over") // what somebody else has brought since is not the ConfigMap's any more
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"b": "2"} })
	s.until("changed", func() bool { return s.content("b") == "2" })
	s.check("a", "none")
	s.check("c", "taken over")
	s.check("mine", "mine")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{} })
	s.until("emptied", func() bool { return s.content("b") == "none" })
	s.check("mine", "mine")
}

// A trigger that failed is tried again.
func TestATriggerIsRetried(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refused.Add(1) <= 2 { // the update, and the roll back after it
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(app.Close)
	s := withSettings(t, map[string]string{"a": "1"})
	s.run("loadPatchType: request\nrequest: {url: '" + app.URL + "'}\ntriggers: [{configMap: settings}]\n")
	s.until("tried again", func() bool { return s.content("a") == "1" && refused.Load() == 3 })
}

// beforeProcess is a stage that sees processes, and the title of one that has not started.
func beforeProcess(t *testing.T, program string) (*stage, string) {
	t.Helper()
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s := withSettings(t, map[string]string{"a": "1"})
	s.fs = fs
	return s, program + ": master process of " + filepath.Base(s.dir)
}

// A native sidecar starts before its program: the files are in place when it is ready, and the program is signalled
// when it runs.
func TestATriggerWaitsForItsProcess(t *testing.T) {
	t.Parallel()
	s, title := beforeProcess(t, "refit-trigger")
	s.run("loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGTERM}\ntriggers: [{configMap: settings}]\n")
	s.check("a", "1")
	app := exec.CommandContext(t.Context(), "/usr/bin/sleep", "600")
	app.Args[0] = title
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	if err := app.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the process ended with %v, want the signal", err)
	}
}

// Between the start of a program and its handler the default action of a signal would end it.
func TestAProgramThatHasJustStartedSurvivesTheSignal(t *testing.T) {
	t.Parallel()
	s, title := beforeProcess(t, "refit-young")
	s.run("loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGPROF}\ntriggers: [{configMap: settings}]\n")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	app := exec.CommandContext(t.Context(), "/bin/bash", "-c", `exec 3<>"$0"; read -t 1.5 -u 3; trap "exit 7" PROF; read -t 20 -u 3`, pipe)
	app.Args[0] = title
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	if err := app.Wait(); app.ProcessState.ExitCode() != 7 {
		t.Errorf("the program ended with %v, want the exit status of its handler", err)
	}
}

// The sidecar may end after putting the files in place and before reloading the program.
func TestAProgramIsToldOfFilesByTheNextSidecar(t *testing.T) {
	t.Parallel()
	s, title := beforeProcess(t, "refit-next")
	configuration := "loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGTERM}\ntriggers: [{configMap: settings}]\n"
	s.run(configuration)
	s.check("a", "1")
	s.stop()
	s.run(configuration)
	app := exec.CommandContext(t.Context(), "/usr/bin/sleep", "20")
	app.Args[0] = title
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	if err := app.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the process ended with %v, want the signal", err)
	}
}

// One after the other they would take longer than the startup probe of a native sidecar allows.
func TestRestoreAndTriggersTogetherDelayReadinessForABoundedTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.api.set(func(a *apiServer) { a.down = true })
	began := time.Now()
	s.runWithout("read what the workload has accepted", settings+"restore: {waitSeconds: 6}\n")
	latest := time.Now().Add(6 * time.Second) // the sidecar has started before
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) != 2 || s.times[0].Before(began.Add(5*time.Second)) || s.times[1].Before(began.Add(6*time.Second)) ||
		s.times[1].After(latest) || s.times[1].Sub(s.times[0]) != 600*time.Millisecond {
		t.Errorf("started after %s, the time for restore and triggers ends at %s", began, s.times)
	}
}

// A source of a trigger that cannot be reached does not prevent the pod from becoming ready.
func TestATriggerThatCannotBeReadDelaysReadinessForABoundedTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.api.forbidden = true
	s.runWithout("forbidden", settings)
}

// A pod with files of a trigger and of a request is restored from the record: the digest of the set leaves out what the
// trigger brings itself.
func TestRestoreBesideATrigger(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.accept("v1", "/mine", "mine")
	s.remembered("v1")
	n := s.newPod("web-abc-2").run(settings)
	n.check("mine", "mine")
	n.check("a", "1")
}

// A program that has started may need longer than the reload actions wait for it.
func TestAProgramThatStartsSlowlyIsToldAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(app.Close)
	s, title := beforeProcess(t, "refit-slow")
	s.run("loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGCONT}\nreload: [{request: {url: '" + app.URL + "'}}]\ntriggers: [{configMap: settings}]\n")
	s.check("a", "1")
	program := exec.CommandContext(t.Context(), "/usr/bin/sleep", "600")
	program.Args[0] = title
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	s.until("the failure is reported", func() bool { return strings.Contains(s.results.value(hotupdateinpod.Name), "Update failed") })
	s.until("told again", func() bool { return strings.Contains(s.results.value(hotupdateinpod.Name), "Update success") })
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	s.check("a", "1")
	_ = program.Process.Kill()
	_ = program.Wait()
}
