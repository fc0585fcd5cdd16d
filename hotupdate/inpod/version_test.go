package inpod_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A program that refuses files continues with the old ones, and reports their version. The check cannot notice that if the new
// files have the same version.
func TestAnotherContentNeedsAnotherVersionIfTheCheckComparesVersions(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("v1")) })) // accepts nothing after v1
	t.Cleanup(app.Close)
	s := newStage(t).run(none + "verify: {checks: [{url: '" + app.URL + "', expectedResult: '{version}'}]}\n")
	s.accept("v1", "/conf", "good")
	if code, said := s.post("v1", s.origin.put("/conf", "bad")); code != http.StatusBadRequest || !strings.Contains(said, `version "v1" is in force with other content`) {
		t.Errorf("other content: %d %s", code, said)
	}
	s.check("conf", "good")
	if code, said := s.post("v2", s.origin.URL+"/conf"); code != http.StatusInternalServerError {
		t.Errorf("another version: %d %s", code, said)
	}
	s.accept("v1", "/conf", "good") // the same once more
	n := newStage(t).run(none + "verify: {checks: [{url: '" + app.URL + "'}]}\n")
	n.accept("v1", "/conf", "good")
	n.accept("v1", "/conf", "better") // nothing compares versions
}
