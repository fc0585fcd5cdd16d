package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfARunningPodAreChangedByACommand(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.start(s.examplePod("pod.yaml"))
	s.serves(pod.Name, "Welcome to nginx")
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		s.check(os.WriteFile(path, []byte(text), 0o600), "write %s", name)
		return path
	}
	// The configuration of the sidecar checks /version.
	serving := func(version, words string) string {
		return "server { listen 80; default_type text/plain; location / { return 200 '" + words + "'; } location = /version { return 200 '" + version + "'; } }\n"
	}
	first, second := file("first.conf", serving("v1", "this is the first")), file("default.conf", serving("v2", "this is the second"))
	s.command(0, []string{"initial", "present"}, "files", "history", pod.Name)
	s.command(0, []string{"version v1 would be accepted"}, "files", "update", pod.Name, "--version=v1", "default.conf="+first, "--dry-run")
	s.command(0, []string{"version v1 is in use: 1 file, "}, "files", "update", pod.Name, "--version=v1", "default.conf="+first)
	s.serves(pod.Name, "this is the first")
	s.command(0, []string{"version v1 is in use already"}, "files", "update", pod.Name, "--version=v1", "default.conf="+first)
	s.command(0, []string{"version v2 is in use: "}, "files", "update", "pod/"+pod.Name, "--version=v2", second)
	s.serves(pod.Name, "this is the second")
	s.command(0, []string{"VERSION", "v2", "present", "v1"}, "files", "history", pod.Name)
	s.command(1, []string{"Verifying", "want \"v3\"", "the former files are in use again"}, "files", "update", pod.Name, "--version=v3", second)
	s.serves(pod.Name, "this is the second")
	s.command(0, []string{"back to version v1"}, "files", "rollback", pod.Name, "--to=v1")
	s.serves(pod.Name, "this is the first")
	s.command(0, []string{"version v2 is in use"}, "files", "update", pod.Name, "--version=v2", "--url="+s.source("v2/default.conf"))
	s.serves(pod.Name, "this is v2")

	s.command(1, []string{"link-local"}, "files", "update", pod.Name, "--version=v4", "--url=http://169.254.169.254/x")
	s.command(2, []string{"wants a token", "--token-secret"}, "files", "history", pod.Name, "--token-secret=")
	s.command(2, []string{"has no key password"}, "files", "history", pod.Name, "--token-secret=refit-sidecar-token/password")
	s.command(1, []string{"not found"}, "files", "history", "web-away")
	s.command(1, []string{"cannot be reached"}, "files", "history", pod.Name, "--port=5999")
	s.command(2, []string{"no such revision"}, "files", "rollback", pod.Name, "--to=v99")
	s.serves(pod.Name, "this is v2")
	for _, container := range []string{"nginx", "refit-sidecar"} {
		s.untouched(pod, container)
	}
}
