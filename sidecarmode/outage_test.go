package sidecarmode_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refit-project/refit/test/kit/procfs"
)

// application is the process that is signalled for updates, in the container that the pod's status names.
type application struct {
	t       *testing.T
	tree    *procfs.Tree
	process *exec.Cmd
}

// restart starts a process in a new instance of the container. It ends when it is signalled.
func (a *application) restart(instance string) {
	a.t.Helper()
	a.process = exec.CommandContext(a.t.Context(), "/usr/bin/sleep", "600")
	if err := a.process.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.tree.Put(procfs.Process{
		PID: a.process.Process.Pid, PPID: 1, Start: 2, Comm: "app", Cmdline: "app\x00", Cgroup: "0::/../cri-containerd-" + instance + ".scope\n",
	})
}

// told waits for the end of the process. It is not SIGHUP that ends it: under nohup processes ignore that.
func (a *application) told() {
	a.t.Helper()
	_ = a.process.Wait() // by a signal
	a.tree.Remove(a.process.Process.Pid)
	if status, ok := a.process.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGUSR1 {
		a.t.Errorf("the process ended with %v", a.process.ProcessState)
	}
}

// setOutage makes the API server respond to nothing.
func (s *stage) setOutage(down bool) {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.down = down
}

// runs is kubelet's report of the instance of the container that runs.
func (s *stage) runs(instance string) {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.put(podPath, `{"metadata":{"name":"gs-0","namespace":"games","uid":"u-1"},"spec":{"containers":[{"name":"app"},{"name":"refit-sidecar"}]},
		"status":{"containerStatuses":[{"name":"app","containerID":"containerd://`+instance+`","state":{"running":{}}}]}}`)
}

// A sidecar that started in an outage of the API server does not know which process the application's is, and neither does one
// whose application was restarted in an outage. It says so, and writes nothing. The first update after the outage succeeds,
// although the watch has not come back: it waits longer after each failure.
func TestUpdatesAfterAnOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.api.unwatched = true
	app := application{t: t, tree: procfs.NewTree(t)}
	app.tree.Self(os.Getpid())
	app.tree.Put(procfs.Process{PID: os.Getpid(), PPID: 1, Start: 1, Comm: "refit-sidecar", Cmdline: "refit-sidecar\x00"})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Query().Get("v")) }))
	defer origin.Close()
	files := t.TempDir()
	s.mount(base + "procRoot: " + app.tree.Root + `
plugins:
- name: hot_update
  config:
    fileDir: ` + files + `
    loadPatchType: signal
    signal: {containerName: app, signalName: SIGUSR1}
    fetch: {allowNetworks: [127.0.0.0/8]}
    restore: {configMap: "off"}
`)
	s.start()
	s.until("ready", ready(s))
	update := func(version string, want int) string {
		t.Helper()
		code, said := s.call(http.MethodPost, s.address, "/hot-update?version="+version+"&name=f&url="+origin.URL+"/f%3Fv="+version)
		if code != want {
			t.Fatalf("%s: %d %s, want %d", version, code, said, want)
		}
		return said
	}
	inPlace := func(want string) {
		t.Helper()
		if b, _ := os.ReadFile(filepath.Join(files, "f")); string(b) != want {
			t.Errorf("%q in place, want %q", b, want)
		}
	}
	refused := func(version, before string) {
		t.Helper()
		if said := update(version, http.StatusServiceUnavailable); !strings.Contains(said, "the API server does not respond") {
			t.Errorf("%s: %s", version, said)
		}
		inPlace(before)
	}
	accepted := func(version string) {
		t.Helper()
		update(version, http.StatusOK)
		app.told()
		inPlace(version)
	}

	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	app.restart(first)
	s.setOutage(true)
	refused("v1", "")
	s.setOutage(false)
	s.runs(first)
	accepted("v2")

	s.setOutage(true)
	app.restart(first) // as it is known
	accepted("v3")
	app.restart(second) // not known yet
	refused("v4", "v3")
	s.setOutage(false)
	s.runs(second)
	accepted("v5")
}

// Plugins whose configuration has values of the pod start when the pod has been read; those before and after them at once.
func TestPluginsWithValuesOfThePodWaitForTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setOutage(true)
	state := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(state, []byte("idle"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	config := func(room string) string {
		return base + `
plugins:
- name: http_probe
  config:
    startDelaySeconds: 1
    probeIntervalSeconds: 1
    endpoints: [{name: room, file: {path: ` + state + `}, storageConfig: {inKube: {labelKey: 'room-` + room + `'}}}]
- name: hot_update
  config: {fileDir: ` + files + `, loadPatchType: none, restore: {configMap: "off"}}
`
	}
	s.mount(config("${POD:ROOM}"))
	s.start()
	s.until("the other plugin runs", func() bool { code, _ := s.call(http.MethodGet, s.address, "/revisions"); return code == http.StatusOK })
	s.until("ready", ready(s))
	const waits = "waiting for values of the pod: "
	if _, said := s.call(http.MethodGet, s.address, "/status"); !strings.Contains(said, waits) || !strings.Contains(said, "${POD:ROOM}") {
		t.Errorf("status %s", said)
	}
	s.mount(config("${POD:ROOM}-too")) // is no reason to give up either
	s.until("not taken over", func() bool {
		_, said := s.call(http.MethodGet, s.health, "/metrics")
		return strings.Contains(said, "refit_sidecar_config_last_reload_successful 0")
	})
	s.setOutage(false)
	s.until("labelled", func() bool { return s.api.pod().Labels["room-blue-too"] == "idle" })
	if _, said := s.call(http.MethodGet, s.address, "/status"); strings.Contains(said, waits) {
		t.Errorf("status %s", said)
	}
}
