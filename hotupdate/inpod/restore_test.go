package inpod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/signal"
)

func newContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func TestRestoreInANewPod(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1", "/b", "B2", "/a", "A3")
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A3")
	n.check("b", "B2")
	// The content at the address differs from what was accepted.
	s.origin.put("/b", "B other")
	m := n.newPod("web-abc-3").run(none)
	m.check("a", "none")
	if got := m.results.value("hot_update"); !strings.HasPrefix(got, "v3: Update failed: restore: ") || !strings.Contains(got, "digest") {
		t.Errorf("annotation %q", got)
	}
}

func TestRestartOfTheContainerKeepsThisPodsRevision(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.stop()
	asked := s.origin.asked
	s.api.set(func(a *apiServer) { // another pod of the workload has gone on
		a.configMaps["sidecar-result"]["Deployment.web"] = `{"uid":"d1","current":"d","revisions":[{"version":"v9","digest":"d","sources":[{"url":"` + s.origin.URL + `/a","name":"a"}]}]}`
	})
	s.run(none)
	s.check("a", "A1")
	if s.origin.asked != asked {
		t.Error("fetched again")
	}
}

// A ConfigMap that is not there, and one that others write at the same time.
func TestMissingAndContendedConfigMap(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.api.configMaps = map[string]map[string]string{}
	s.api.conflicts = 2
	s.run(none)
	s.accept("v1", "/a", "A1")
	s.remembered("v1")
	if s.api.data("sidecar-result", "another") != "pod" {
		t.Error("another pod's part is gone")
	}
}

// If the record cannot be read, an update that keeps the other files would remove the workload's. It is accepted when the
// role is back, without a restart.
func TestRoleThatForbidsTheConfigMap(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.api.forbidden = true
	s.runWithout("forbidden", none)
	address := s.origin.put("/a", "A1")
	if code, said := s.post("v1", address); code != http.StatusServiceUnavailable || !strings.Contains(said, "forbidden") {
		t.Errorf("%d %s", code, said)
	}
	if code, answer := s.postJSON("/hot-update", `{"version":"v1","keep":false,"url":"`+address+`"}`); code != http.StatusOK {
		t.Errorf("all files: %d %v", code, answer)
	}
	s.until("said", func() bool { return strings.Contains(s.plugin.Status().Message, "forbidden") })
	s.check("a", "A1")
	s.api.set(func(a *apiServer) { a.forbidden = false })
	s.remembered("v1")
}

// The program starts after the sidecar. The sidecar waits for its process while the API responds, and then reloads it.
func TestRestoreWaitsForTheProcess(t *testing.T) {
	t.Parallel()
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s := withAccepted(t, "/a", "A1")
	n := s.newPod("web-abc-2")
	n.fs = fs
	title := "refit-late: master process of " + filepath.Base(n.dir)
	n.start("loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGTERM}\n")
	n.until("files in place", func() bool { return n.content("a") == "A1" })
	n.until("waiting", func() bool { return strings.Contains(n.plugin.Status().Message, "waiting for the process") })
	if n.ready() {
		t.Error("ready before the restore has ended")
	}
	if code, said := n.post("v2", n.origin.URL+"/a"); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, said)
	}
	app := exec.CommandContext(t.Context(), "/usr/bin/sleep", "600")
	app.Args[0] = title
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := app.Wait(); !errors.As(err, &exit) {
		t.Errorf("the process ended with %v", err)
	}
	n.until("ready", n.ready)
}

func TestRestoreHasADeadline(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.origin.mu.Lock()
	delete(s.origin.files, "/a")
	s.origin.mu.Unlock()
	n := s.newPod("web-abc-2").runWithout("source a", none)
	if got := n.results.value("hot_update"); !strings.HasPrefix(got, "v1: Update failed: restore: ") {
		t.Errorf("annotation %q", got)
	}
	n.accept("v2", "/a", "A2")
	n.check("a", "A2")
}

func TestRestoreOutlastsAnAPIServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	n := s.newPod("web-abc-2")
	n.api.set(func(a *apiServer) { a.down = true })
	n.start(none)
	n.until("said", func() bool { return strings.Contains(n.plugin.Status().Message, "read what the workload has accepted") })
	n.api.set(func(a *apiServer) { a.down = false })
	n.until("restored", func() bool { return n.content("a") == "A1" })
}

// What pods of other workloads have accepted is not used, nor what the reference implementation wrote for other pods.
func TestNothingFromOtherWorkloads(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	u := s.origin.put("/a", "A")
	s.api.configMaps["sidecar-result"] = map[string]string{
		"Deployment.other":  `{"current":"d","revisions":[{"version":"v9","digest":"d","sources":[{"url":"` + u + `","name":"a"}]}]}`,
		"StatefulSet.web":   `{"current":"d","revisions":[{"version":"v9","digest":"d","sources":[{"url":"` + u + `","name":"a"}]}]}`,
		"games-web-abc-2":   "hot_update:\n  v9: " + u + "\n",
		"games-web-abc-1-x": "hot_update:\n  v9: " + u + "\n",
	}
	s.run(none)
	s.check("a", "none")
}

func TestReferenceRecordOfThisPodIsRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	u := s.origin.put("/a", "A")
	s.api.configMaps["sidecar-result"]["games-web-abc-1"] = fmt.Sprintf("hot_update:\n    OriginVersion: OriginUrl\n    v9: %s/none\n    v10: %s\n", s.origin.URL, u)
	s.run(none)
	s.check("a", "A")
	if got := s.results.value("hot_update"); got != "v10: Update success" {
		t.Errorf("annotation %q", got)
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	volume := t.TempDir()
	swap := func(name, content string) {
		dir := filepath.Join(volume, name)
		for _, err := range []error{
			os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "app.conf"), []byte(content), 0o600),
			os.Symlink(name, filepath.Join(volume, "..data_tmp")), os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	swap("..1", "one")
	if err := os.Symlink("..data/app.conf", filepath.Join(volume, "app.conf")); err != nil {
		t.Fatal(err)
	}
	s.api.configMaps["settings"] = map[string]string{"level": "easy", "unused": "x"}
	s.run(none + "triggers:\n- directory: " + volume + "\n- configMap: settings\n  files: {level: game/level.txt}\n")
	s.until("both are there", func() bool { return s.content("app.conf") == "one" && s.content("game/level.txt") == "easy" })
	s.check("unused", "none")
	swap("..2", "two")
	s.until("swapped", func() bool { return s.content("app.conf") == "two" })
	s.check("game/level.txt", "easy")
}

// A Deployment that was deleted and created again under its name is another workload.
func TestRecreatedWorkloadDoesNotInheritRevisions(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.api.set(func(a *apiServer) { a.deployment = "d2" })
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "none")
	n.accept("v5", "/b", "B")
	n.remembered("v5")
	if text := n.api.data("sidecar-result", "Deployment.web"); strings.Contains(text, "v1") || !strings.Contains(text, "d2") {
		t.Errorf("record %s", text)
	}
}

// The volume's own revision is in force at once, also while the API server is away.
func TestOwnRevisionIsUsedWithoutAskingTheAPI(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.stop()
	s.api.set(func(a *apiServer) { a.down = true })
	s.run(none)
	s.check("a", "A1")
	s.api.set(func(a *apiServer) { a.down = false })
	s.accept("v2", "/b", "B2")
	s.remembered("v2")
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.check("b", "B2")
}

// The digest of the whole set is compared: a record with parts that someone has combined is not restored.
func TestDigestOfTheRestoredSetIsChecked(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1", "/b", "B2")
	s.api.set(func(a *apiServer) {
		var r map[string]any
		_ = json.Unmarshal([]byte(a.configMaps["sidecar-result"]["Deployment.web"]), &r)
		current := r["revisions"].([]any)[0].(map[string]any)
		current["sources"] = current["sources"].([]any)[:1]
		b, _ := json.Marshal(r)
		a.configMaps["sidecar-result"]["Deployment.web"] = string(b)
	})
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.check("b", "none")
	if got := n.results.value("hot_update"); !strings.Contains(got, "digest") || !strings.Contains(got, "v1 is in force instead") {
		t.Errorf("annotation %q", got)
	}
}

// A URL with credentials is in no ConfigMap, annotation or answer, and the next pod says why it cannot restore it.
func TestCredentialsOfURLsAreNowhere(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	address := s.origin.put("/a", "A1") + "?token=s3cret"
	if code, answer := s.postJSON("/hot-update", `{"version":"v1","url":"`+address+`"}`); code != http.StatusOK || strings.Contains(fmt.Sprint(answer), "s3cret") {
		t.Fatalf("%d %v", code, answer)
	}
	s.remembered("v1")
	if code, answer := s.postJSON("/hot-update", `{"version":"v2","url":"`+s.origin.URL+`/none?token=s3cret"}`); code == http.StatusOK || strings.Contains(fmt.Sprint(answer), "s3cret") {
		t.Errorf("%d %v", code, answer)
	}
	for what, text := range map[string]string{
		"record": s.api.data("sidecar-result", "Deployment.web"), "annotation": s.results.value("hot_update"),
		"detail": s.results.value("hot_update/detail"), "status": fmt.Sprintf("%+v", s.plugin.Status()),
	} {
		if strings.Contains(text, "s3cret") || text == "" {
			t.Errorf("%s: %s", what, text)
		}
	}
	n := s.newPod("web-abc-2").run(none)
	if got := n.results.value("hot_update"); !strings.Contains(got, "restore") || !strings.Contains(got, "a query") {
		t.Errorf("annotation %q", got)
	}
}
