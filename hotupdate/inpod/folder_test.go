package inpod_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failed waits until the plugin has ended with an error, which it returns. The plugin manager starts another one then.
func (s *stage) failed() error {
	s.t.Helper()
	err := <-s.ended
	s.ended <- nil // for the end of the test
	if err == nil {
		s.t.Error("ended without an error")
	}
	return err
}

// Somebody deletes what the sidecar keeps in the volume, and with it the files of the program. The sidecar says so, answers no
// update with the old state, and ends, so that the next one restores the files.
func TestDeletedFilesOfTheSidecarAreRestored(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(dir string) error{
		"everything":           func(dir string) error { return os.RemoveAll(filepath.Join(dir, "..refit")) },
		"the temporary folder": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "..refit/tmp")) },
		"the revisions":        func(dir string) error { return os.RemoveAll(filepath.Join(dir, "..refit/revisions")) },
		"the current revision": func(dir string) error { return os.RemoveAll(filepath.Join(dir, target(dir))) },
		"the lock":             func(dir string) error { return os.Remove(filepath.Join(dir, "..refit/lock")) },
		"everything, and again": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "..refit")), os.Mkdir(filepath.Join(dir, "..refit"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withAccepted(t, "/a", "A1")
			s.accept("v2", "/b", "B2")
			s.remembered("v2")
			s.until("removed", func() bool { return remove(s.dir) == nil }) // the sidecar may still write to it
			if health := s.plugin.Status(); health.Healthy || !strings.Contains(health.Message, "is missing") {
				t.Errorf("status %+v", health)
			}
			if code, said := s.post("v3", s.origin.put("/c", "C3")); code != http.StatusServiceUnavailable || !strings.Contains(said, "is missing") {
				t.Errorf("%d %s", code, said)
			}
			if err := s.failed(); err != nil && !strings.Contains(err.Error(), "..refit") {
				t.Errorf("ended with %v", err)
			}
			s.stop()
			s.run(none)
			s.check("a", "A1")
			s.check("b", "B2")
			s.accept("v3", "/c", "C3")
			if health := s.plugin.Status(); !health.Healthy {
				t.Errorf("status %+v", health)
			}
		})
	}
}

// target is the folder with the files in force.
func target(dir string) string {
	link, _ := os.Readlink(filepath.Join(dir, "..data"))
	return strings.TrimSuffix(link, "/files")
}

// It is noticed without an update.
func TestADeletedFolderIsNoticed(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/a", "A1")
	s.until("removed", func() bool { return os.RemoveAll(filepath.Join(s.dir, "..refit")) == nil })
	_ = s.failed()
}
