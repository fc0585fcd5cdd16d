package update_test

import (
	"encoding/json"
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

// An update needs no API server. What it brought is in the pods that are made when it is back.
func TestWhatIsAcceptedDuringAnOutageIsRecordedAfterIt(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/a", "A1")
	s.remembered("v1")
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

// Going back to before the first update is no revision that cannot be restored: neither it nor what follows it is.
func TestUpdatesAfterARollbackToTheBeginningAreRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/a", "A1")
	s.remembered("v1")
	if code, answer := s.postJSON("/rollback", `{}`); code != http.StatusOK {
		t.Fatalf("%d %v", code, answer)
	}
	s.until("recorded", func() bool { return s.recorded() == "" })
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "none")
	if got := n.results.value("hot_update"); got != "" {
		t.Errorf("nothing was to be restored, and the annotation says %q", got)
	}
	n.accept("v2", "/a", "A2")
	n.remembered("v2")
	if code, answer := n.postJSON("/rollback", `{}`); code != http.StatusOK {
		t.Fatalf("%d %v", code, answer)
	}
	n.until("recorded", func() bool { return n.recorded() == "" })
	n.accept("v3", "/a", "A3")
	n.remembered("v3")
	m := n.newPod("web-abc-3").run(none)
	m.check("a", "A3")
}

// Content of a trigger that has changed since the last update does not keep the next one from being restored, also after a
// restart of the sidecar.
func TestChangedTriggersDoNotHideWhatWasRecorded(t *testing.T) {
	t.Parallel()
	s := withSettings(t, map[string]string{"a": "1"}).run(settings)
	s.accept("v1", "/mine", "mine")
	s.remembered("v1")
	s.relist(func(a *apiServer) { a.configMaps["settings"] = map[string]string{"a": "2"} })
	s.until("changed", func() bool { return s.content("a") == "2" })
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
