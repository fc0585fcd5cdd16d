package inpod_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// gone makes the origin answer 404 for a path.
func (o *origin) gone(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.files, path)
}

// names are the files that new pods begin with, by the record.
func (s *stage) names() []string {
	var r struct {
		Current   string
		Revisions []struct {
			Digest  string
			Sources []struct{ Name string }
		}
	}
	_ = json.Unmarshal([]byte(s.api.data("sidecar-result", "Deployment.web")), &r)
	var names []string
	for _, one := range r.Revisions {
		if one.Digest == r.Current {
			for _, o := range one.Sources {
				names = append(names, o.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (s *stage) checkRecord(want ...string) {
	s.t.Helper()
	if got := s.names(); !slices.Equal(got, want) {
		s.t.Errorf("new pods begin with %q, want %q", got, want)
	}
}

// The next update in a pod that could not restore the workload's files does not remove them from the workload.
func TestAnUpdateAfterAFailedRestoreKeepsTheFilesOfTheWorkload(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/base", "B", "/k", "K")
	s.origin.gone("/base")
	n := s.newPod("web-abc-2").runWithout("source base", none)
	if code, said := n.post("v3", n.origin.put("/z", "Z")); code != http.StatusInternalServerError || !strings.Contains(said, "base") || !strings.Contains(said, "v2, which could not be restored") {
		t.Errorf("%d %s", code, said)
	}
	n.check("z", "none")
	n.checkRecord("base", "k")
	n.origin.put("/base", "B")
	n.mustPost("v3", n.origin.URL+"/z")
	n.remembered("v3")
	n.checkRecord("base", "k", "z")
	for name, want := range map[string]string{"base": "B", "k": "K", "z": "Z"} {
		n.check(name, want)
	}
	if got := n.plugin.Status().Message; got != "" {
		t.Errorf("status %q", got)
	}
}

// The missing file can be sent, or all files.
func TestAnUpdateAfterAFailedRestoreMayBringWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/base", "B", "/k", "K")
	s.origin.put("/base", "another")
	n := s.newPod("web-abc-2").run(none)
	n.accept("v3", "/base", "B3")
	n.remembered("v3")
	n.checkRecord("base", "k")
	n.check("base", "B3")
	n.check("k", "K")
	n.origin.gone("/base")
	m := n.newPod("web-abc-3").runWithout("source base", none)
	m.mustPost("v4", m.origin.put("/all", "A"), "keep", "false")
	m.remembered("v4")
	m.checkRecord("all")
}

// Content that came with a request cannot be fetched by another pod: the newest complete revision is in force, and the lost
// files are named until they are sent.
func TestTheNewestCompleteRevisionIsRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/base", "B")
	s.accept("v2", "/k", "K")
	s.remembered("v2") // what is accepted at once after it would be recorded alone
	s.mustPostJSON("/hot-update", `{"version":"v3","name":"i","data":"aQ=="}`)
	s.remembered("v3")
	n := s.newPod("web-abc-2").run(none)
	for name, want := range map[string]string{"base": "B", "k": "K", "i": "none"} {
		n.check(name, want)
	}
	if got := n.results.value("hot_update"); !strings.HasPrefix(got, "v3: Update failed: restore: ") || !strings.HasSuffix(got, "v2 is in force instead") {
		t.Errorf("annotation %q", got)
	}
	n.stop()
	n.run(none) // a restart does not make it this pod's own
	n.check("k", "K")
	if code, said := n.post("v4", n.origin.put("/z", "Z")); code != http.StatusConflict || !strings.Contains(said, "of v3: i") {
		t.Errorf("%d %s", code, said)
	}
	n.mustPostJSON("/hot-update", `{"version":"v4","files":[{"url":"ORIGIN/z"},{"url":"ORIGIN/z","name":"i"}]}`)
	n.remembered("v4")
	n.checkRecord("base", "i", "k", "z")
	m := n.newPod("web-abc-3").run(none)
	for name, want := range map[string]string{"base": "B", "k": "K", "i": "Z", "z": "Z"} {
		m.check(name, want)
	}
}

// A roll back defines the workload's files: nothing remains to be restored then.
func TestARollbackEndsWhatCouldNotBeRestored(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/base", "B", "/k", "K")
	s.origin.gone("/k")
	n := s.newPod("web-abc-2").runWithout("source k", none)
	n.check("base", "B")
	n.mustPostJSON("/rollback", `{"version":"v1"}`)
	n.remembered("v1")
	n.accept("v3", "/z", "Z")
	n.remembered("v3")
	n.checkRecord("base", "z")
}

// If a revision was rolled back to, the one that was left is not restored instead.
func TestALeftRevisionIsNotRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/a", "A1")
	s.accept("v2", "/b", "B2")
	s.accept("v3", "/c", "C3")
	s.mustPostJSON("/rollback", `{}`)
	s.remembered("v2")
	s.origin.gone("/b")
	n := s.newPod("web-abc-2").runWithout("source b", none)
	for name, want := range map[string]string{"a": "A1", "b": "none", "c": "none"} {
		n.check(name, want)
	}
}

// A missing role at the start, or a server that does not respond, delays the restore without ending it.
func TestWhatCouldNotBeRestoredIsRestoredLater(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]func(s *stage, missing bool){
		"forbidden": func(s *stage, missing bool) { s.api.set(func(a *apiServer) { a.forbidden = missing }) },
		"source a": func(s *stage, missing bool) {
			if s.origin.gone("/a"); !missing {
				s.origin.put("/a", "A1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withAccepted(t, "/a", "A1")
			n := s.newPod("web-abc-2")
			is(n, true)
			n.runWithout(name, none)
			n.check("a", "none")
			if got := n.plugin.Status().Message; !strings.Contains(got, "restore") {
				t.Errorf("status %q", got)
			}
			is(n, false)
			n.until("restored", func() bool { return n.content("a") == "A1" })
			n.until("said", func() bool {
				return n.results.value("hot_update") == "v1: Update success" && n.plugin.Status().Message == ""
			})
		})
	}
}

// Content that came with a request is lost for good; the source of the previous revision may be unavailable only
// temporarily.
func TestAPodWithoutFilesIsNotReadyBeforeTheSourceOfAnEarlierRevisionIsBack(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/a", "A1")
	s.mustPostJSON("/hot-update", `{"version":"v2","name":"i","data":"aQ=="}`)
	s.remembered("v2")
	s.origin.gone("/a")
	n := s.newPod("web-abc-2")
	n.start(none)
	n.until("tried", func() bool { return n.ready() || strings.HasPrefix(n.plugin.Status().Message, "restore v2: ") })
	if n.ready() {
		t.Error("ready without files")
	}
	n.origin.put("/a", "A1")
	n.until("ready", n.ready)
	n.check("a", "A1")
}

// A revision in the record with an invalid file name can never be restored: the previous one is restored, and updates
// continue from it.
func TestARecordWithAnImpossibleNameHidesNoOlderRevision(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1", "/b", "B2")
	s.api.set(func(a *apiServer) {
		data := a.configMaps["sidecar-result"]
		data["Deployment.web"] = strings.ReplaceAll(data["Deployment.web"], `"name":"b"`, `"name":"../b"`)
	})
	n := s.newPod("web-abc-2").run(none)
	n.check("a", "A1")
	n.accept("v3", "/c", "C3")
	n.remembered("v3")
	n.checkRecord("a", "c")
}

// A manifest was damaged while the sidecar was not running: the previous files are in force, and then the files in the
// record.
func TestADamagedRevisionIsRestoredFromTheRecord(t *testing.T) {
	t.Parallel()
	s := withAccepted(t, "/a", "A1", "/b", "B2")
	s.stop()
	target, err := os.Readlink(s.dir + "/..data")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.dir+"/"+strings.TrimSuffix(target, "/files")+"/manifest.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(none)
	s.check("a", "A1")
	s.check("b", "B2")
	s.mustPostJSON("/rollback", `{"version":"v1"}`)
}
