package inpod_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// recorded is the digest of the revision that new pods of the workload begin with.
func (s *stage) recorded() string {
	var r struct {
		Current string `json:"current"`
	}
	_ = json.Unmarshal([]byte(s.api.data("sidecar-result", "Deployment.web")), &r)
	return r.Current
}

// refused is how many requests the API server has refused while it was down.
func (s *stage) refused() int {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	return s.api.refused
}

// An update needs no API server. New pods have its files when the API server is back.
func TestWhatIsAcceptedDuringAnOutageIsRecordedAfterIt(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.api.set(func(a *apiServer) { a.down = true })
	s.accept("v2", "/b", "B2")
	s.until("said", func() bool { return strings.Contains(s.plugin.Status().Message, "not recorded") })
	s.api.set(func(a *apiServer) { a.down = false })
	s.remembered("v2")
	s.until("said no more", func() bool { return s.plugin.Status().Message == "" })
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.check("b", "B2")
}

// The pod ends while the sidecar waits for its next attempt to record, and the API server is back.
func TestWhatIsAcceptedDuringAnOutageIsRecordedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.api.set(func(a *apiServer) { a.down = true })
	s.accept("v2", "/b", "B2")
	before := s.refused()
	s.until("tried again", func() bool { return s.refused() > before+1 }) // the next attempt is seconds later
	s.until("said", func() bool { return strings.Contains(s.plugin.Status().Message, "not recorded") })
	s.api.set(func(a *apiServer) { a.down = false })
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.check("b", "B2")
}

// The container is restarted before a roll back to the initial files could be recorded.
func TestARollbackDuringAnOutageIsNotUndoneByARestart(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.api.set(func(a *apiServer) { a.down = true })
	s.mustPostJSON("/rollback", `{}`)
	s.stop()
	s.api.set(func(a *apiServer) { a.down = false })
	s.run(none)
	s.check("a", "none")
	s.until("recorded", func() bool { return s.recorded() == "" })
}

// A roll back to the initial files can be restored, and so can the revisions after it.
func TestUpdatesAfterARollbackToTheBeginningAreRestored(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.mustPostJSON("/rollback", `{}`)
	s.until("recorded", func() bool { return s.recorded() == "" })
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "none")
	if got := n.results.value("hot_update"); got != "" {
		t.Errorf("nothing was to be restored, and the annotation says %q", got)
	}
	n.accept("v2", "/a", "A2")
	n.remembered("v2")
	n.mustPostJSON("/rollback", `{}`)
	n.until("recorded", func() bool { return n.recorded() == "" })
	n.accept("v3", "/a", "A3")
	n.remembered("v3")
	m := n.newPod("web-abc-3").run(none)
	m.check("a", "A3")
}

// Content of a trigger that has changed since the last update does not prevent the restore of the next one, also after a
// restart of the sidecar.
func TestChangedTriggersDoNotHideWhatWasRecorded(t *testing.T) {
	t.Parallel()
	s := withChangedSettings(t)
	s.stop()
	s.run(settings)
	s.accept("v2", "/more", "more")
	s.remembered("v2")
	n := s.newPod("web-abc-2").run(settings)
	n.check("mine", "mine")
	n.check("more", "more")
	n.check("a", "2")
}

// The first update of a pod that has had files of a trigger only.
func TestTheFirstUpdateBesideATriggerIsRestoredAfterARestart(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.stop()
	s.run(settings)
	s.accept("v1", "/mine", "mine")
	s.remembered("v1")
	n := s.newPod("web-abc-2").run(settings)
	n.check("mine", "mine")
}

// A sidecar that is killed during the outage leaves the record to the next one, which may be killed too.
func TestWhatWasNotRecordedIsRecordedByTheNextSidecar(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.api.set(func(a *apiServer) { a.down = true })
	s.accept("v2", "/b", "B2")
	s.stop()
	s.run(none)
	s.until("said", func() bool { return strings.Contains(s.plugin.Status().Message, "not recorded") })
	s.accept("v3", "/c", "C3")
	s.stop()
	s.run(none)
	s.api.set(func(a *apiServer) { a.down = false })
	s.remembered("v3")
	s.until("said no more", func() bool { return s.plugin.Status().Message == "" })
	s.stop()
	s.api.set(func(a *apiServer) { // it has been recorded once: another pod may accept something else
		a.configMaps["sidecar-result"]["Deployment.web"] = `{"uid":"d1","current":"d","revisions":[{"version":"v9","digest":"d"}]}`
	})
	s.run(none)
	s.stop()
	if got := s.recorded(); got != "d" {
		t.Errorf("recorded once more: %s", got)
	}
}

// New pods have the files of all updates during an outage, not only of the last one.
func TestUpdatesDuringAnOutageAreRestoredTogether(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1")
	s.stop()
	s.api.set(func(a *apiServer) { a.down = true })
	s.run(none)
	s.accept("v2", "/b", "B2")
	s.accept("v3", "/c", "C3")
	before := s.refused()
	s.until("tried twice", func() bool { return s.refused() >= before+2 })
	s.api.set(func(a *apiServer) { a.down = false })
	s.remembered("v3")
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.check("b", "B2")
	n.check("c", "C3")
}

// zipped is an archive with these files, which hold the version and their names.
func zipped(t *testing.T, version string, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, version+" "+name)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An archive is restored, with what has replaced parts of it since.
func TestArchivesAreRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.mustPost("v1", s.origin.put("/v1.zip", zipped(t, "v1", "a", "b/c", "d")), "format", "zip")
	s.remembered("v1")
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "v1 a")
	n.check("b/c", "v1 b/c")
	n.accept("v2", "/a", "A2")
	n.accept("v3", "/b", "a file now")
	n.remembered("v3")
	m := n.newPod("web-abc-3").run(none)
	m.check("a", "A2")
	m.check("b", "a file now")
	m.check("d", "v1 d")
	if got := m.results.value("hot_update"); got != "v3: Update success" {
		t.Errorf("annotation %q", got)
	}
	// The next archive has not all files of the one before, which stay.
	m.mustPost("v4", m.origin.put("/v4.zip", zipped(t, "v4", "a")), "format", "zip")
	m.remembered("v4")
	l := m.newPod("web-abc-4").run(none)
	l.check("a", "v4 a")
	l.check("b", "a file now")
	l.check("d", "v1 d")
}

// A revision that was rolled back to is restored, even if a trigger has other content than at that time.
func TestARollbackBesideAChangedTriggerIsRestored(t *testing.T) {
	t.Parallel()
	s := withChangedSettings(t)
	another := s.origin.put("/mine", "another")
	s.until("accepted", func() bool { code, _ := s.post("v2", another); return code == http.StatusOK })
	s.remembered("v2")
	s.mustPostJSON("/rollback", `{"version":"v1"}`)
	s.check("a", "1")
	s.remembered("v1")
	s.origin.put("/mine", "mine")
	n := s.newPod("web-abc-2").run(settings)
	n.check("mine", "mine")
	n.check("a", "2")
}

// Files of triggers do not prevent the next sidecar of the pod from restoring what this one could not restore.
func TestARestartRestoresBesideFilesOfATrigger(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.accept("v1", "/mine", "mine")
	s.remembered("v1")
	n := s.newPod("web-abc-2")
	n.origin.put("/mine", "not yet")
	n.run(settings)
	n.check("mine", "none")
	n.check("a", "1")
	n.stop()
	n.origin.put("/mine", "mine")
	n.run(settings)
	n.check("mine", "mine")
	n.check("a", "1")
	if got := n.results.value("hot_update"); got != "v1: Update success" {
		t.Errorf("annotation %q", got)
	}
}

// Files of a trigger that replace files of an archive do not prevent the restore of the archive.
func TestAnArchiveBelowATriggerIsRestored(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"other": "1"}).run(settings)
	s.mustPost("v1", s.origin.put("/v1.zip", zipped(t, "v1", "a", "b", "c/d")), "format", "zip")
	s.remembered("v1")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"a": "settings", "c": "no folder"} })
	s.until("changed", func() bool { return s.content("a") == "settings" && s.content("c") == "no folder" })
	address := s.origin.put("/e", "E")
	s.until("accepted", func() bool { code, _ := s.post("v2", address); return code == http.StatusOK })
	s.remembered("v2")
	n := s.newPod("web-abc-2").run(settings)
	for name, want := range map[string]string{"a": "settings", "b": "v1 b", "c": "no folder", "e": "E"} {
		n.check(name, want)
	}
	if got := n.results.value("hot_update"); got != "v2: Update success" && !strings.HasPrefix(got, "sha256-") {
		t.Errorf("annotation %q", got)
	}
}
