package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/refit-project/refit/test/kit/fakeregistry"
)

// served is an image of a registry that misbehaves.
type served struct {
	Size  int
	Fault fakeregistry.Fault
}

// envRegistry has this test binary, started in the network of a node, be a registry of the images in it.
const envRegistry = "REFIT_E2E_REGISTRY"

// TestMisbehavingRegistry is no test of its own: others start it, see registry.
func TestMisbehavingRegistry(t *testing.T) {
	text := os.Getenv(envRegistry)
	if text == "" {
		return
	}
	var images map[string]served
	if err := json.Unmarshal([]byte(text), &images); err != nil {
		t.Fatal(err)
	}
	registry := fakeregistry.Start(t)
	digests := map[string]string{}
	for name, image := range images {
		digests[name] = registry.Add(t, name, image.Size, image.Fault)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"host": registry.Host, "digests": digests}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever started it has ended
}

// registryNode is the node in whose network the cluster's enter script runs programs.
func (s *fixture) registryNode() string { return slices.Min(s.nodes) }

// registry serves images on the loopback interface of the first node, and tells containerd of it. It returns the registry's
// name.
func (s *fixture) registry(images map[string]served) string {
	s.t.Helper()
	s.needsOwnCluster(s.t)
	text, err := json.Marshal(images)
	s.check(err, "encode images")
	command := exec.CommandContext(s.t.Context(), filepath.Join(s.state, "enter"), os.Args[0], "-test.run=^TestMisbehavingRegistry$", "-test.timeout=20m")
	command.Env = append(os.Environ(), envRegistry+"="+string(text))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	s.check(err, "start a registry")
	out, err := command.StdoutPipe()
	s.check(err, "start a registry")
	s.check(command.Start(), "start a registry")
	s.t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = command.Wait()
	})
	var is struct{ Host string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	s.check(err, "read the registry's address")
	s.check(json.Unmarshal(line, &is), "read the registry's address from %q", line)

	folder := filepath.Join(s.state, "nodes", s.registryNode(), "registry", is.Host)
	s.check(os.MkdirAll(folder, 0o755), "tell containerd of the registry")
	s.t.Cleanup(func() { _ = os.RemoveAll(folder) })
	hosts := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", is.Host)
	s.check(os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte(hosts), 0o600), "tell containerd of the registry")
	return is.Host
}

const layer = 4 << 20

// faulty are images of every failure that a registry is known for.
var faulty = map[string]served{
	"well":           {Size: layer},
	"unauthorized":   {Size: layer, Fault: fakeregistry.Fault{Status: http.StatusUnauthorized}},
	"missing":        {Size: layer, Fault: fakeregistry.Fault{Status: http.StatusNotFound}},
	"limited":        {Size: layer, Fault: fakeregistry.Fault{Status: http.StatusTooManyRequests, RetryAfter: "1"}},
	"away":           {Size: layer, Fault: fakeregistry.Fault{Status: http.StatusServiceUnavailable}},
	"away-once":      {Size: layer, Fault: fakeregistry.Fault{Status: http.StatusServiceUnavailable, Times: 2}},
	"stalls":         {Size: layer, Fault: fakeregistry.Fault{StallAfter: layer / 2}},
	"wrong-digest":   {Size: layer, Fault: fakeregistry.Fault{WrongBytes: true}},
	"slow":           {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: layer / 60}},
	"slow-deadline":  {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: layer / 60}},
	"takes-its-time": {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: int(layer / (8 * time.Second).Seconds())}},
}
