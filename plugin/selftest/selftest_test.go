package selftest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/plugin/selftest"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcomes are what tables compare.
func outcomes(r selftest.Report) map[string]bool {
	all := map[string]bool{}
	for _, c := range r {
		all[c.Name] = c.OK
	}
	return all
}

func open(t *testing.T, processes ...procfs.Process) *signal.FS {
	t.Helper()
	tree := procfs.NewTree(t)
	tree.Self(50)
	tree.Put(procfs.Process{PID: 50, Comm: "refit-sidecar", Cmdline: "/refit-sidecar\x00"})
	for _, p := range processes {
		tree.Put(p)
	}
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// Without a shared PID namespace the report says so, with what to do and what still works; with one, each
// container of the pod is looked for.
func TestProcesses(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a1", 32)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "app", ContainerID: "containerd://" + id, State: running},
		{Name: "hidden", ContainerID: "containerd://" + strings.Repeat("b2", 32), State: running},
		{Name: "ended"}, {Name: "refit-sidecar", State: running},
	}}}
	pause := procfs.Process{PID: 1, Comm: "pause", Cmdline: "/pause\x00"}
	tests := map[string]struct {
		fs   *signal.FS
		pod  *corev1.Pod
		want map[string]bool
		said string
	}{
		"no proc":              {nil, pod, map[string]bool{"shared PID namespace": false}, "no proc file system"},
		"shared, pod not read": {open(t, pause), nil, map[string]bool{"shared PID namespace": true}, ""},
		"shared with the node, whose first process is none of the pod": {open(t, procfs.Process{PID: 9, Comm: "pause", Cmdline: "/pause\x00"}), pod, map[string]bool{"shared PID namespace": false}, "set shareProcessNamespace"},
		"not shared": {open(t), pod, map[string]bool{"shared PID namespace": false}, "set shareProcessNamespace"},
		"a process that may not be signalled": {open(t, pause, procfs.Process{PID: 7, Start: 1, Comm: "app", Cgroup: "0::/../cri-containerd-" + id + ".scope\n"}),
			&corev1.Pod{Status: corev1.PodStatus{
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + id, State: running}},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "mesh", ContainerID: "containerd://" + id, State: running}, {Name: "setup"}},
			}},
			map[string]bool{"shared PID namespace": true, "signal container app": false, "signal container mesh": false}, "signal container app: signal 0 to PID 7"},
		"a container that hides its cgroup": {open(t, pause), pod,
			map[string]bool{"shared PID namespace": true, "signal container app": false, "signal container hidden": false}, "its cgroup cannot be seen"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := selftest.Processes(t.Context(), tt.fs, tt.pod, "refit-sidecar", true)
			if diff := cmp.Diff(tt.want, outcomes(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if entry := report.Entry(); !strings.Contains(entry.Message, tt.said) || (tt.said == "") != (entry.State == result.Succeeded) {
				t.Errorf("entry %+v lacks %q", entry, tt.said)
			}
		})
	}
}

// What nothing needs is told, and is no failure.
func TestProcessesThatNothingNeeds(t *testing.T) {
	t.Parallel()
	report := selftest.Processes(t.Context(), nil, nil, "refit-sidecar", false)
	if entry := report.Entry(); entry.State != result.Succeeded || !strings.Contains(entry.Message, "not needed: shared PID namespace: no proc file system") {
		t.Errorf("%+v", entry)
	}
}

// A container that is being restarted has no process, which is no reason to doubt that the next one can be signalled.
func TestContainerBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	const cgroup = "0::/kubepods/pod1/"
	tree := procfs.NewTree(t)
	tree.Self(50)
	tree.Put(procfs.Process{PID: 1, Comm: "pause", Cmdline: "/pause\x00"})
	tree.Put(procfs.Process{PID: 50, Comm: "refit-sidecar", Cmdline: "/refit-sidecar\x00", Cgroup: cgroup + strings.Repeat("c3", 32) + "\n"})
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	tree.Put(procfs.Process{PID: os.Getpid(), Comm: "this"}) // whose own container says nothing of others
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "app", ContainerID: "containerd://" + strings.Repeat("a1", 32), State: running}, {Name: "odd", ContainerID: "odd", State: running},
	}}}
	report := selftest.Processes(t.Context(), fs, pod, "refit-sidecar", true)
	if diff := cmp.Diff(map[string]bool{"shared PID namespace": true, "signal container app": true, "signal container odd": false}, outcomes(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if said := report[1].Detail; !strings.Contains(said, "no process at the moment") {
		t.Errorf("detail %q", said)
	}
}

func TestEntryDistinguishesNeededFromOtherChecks(t *testing.T) {
	t.Parallel()
	report := selftest.Report{{Name: "a", OK: true, Needed: true}, {Name: "b", Detail: "not here"}}
	if e := report.Entry(); e.State != result.Succeeded || !strings.Contains(e.Message, "not needed: b: not here") {
		t.Errorf("%+v", e)
	}
	report = append(report, selftest.Check{Name: "c", Needed: true, Detail: strings.Repeat("why ", 10_000)})
	if e := report.Entry(); e.State != result.Failed || !strings.HasPrefix(e.Message, "missing: c: why") || len(e.Message) > result.MaxMessage {
		t.Errorf("%s of %d bytes", e.State, len(e.Message))
	}
}

// The role is asked about, once for each need, and what it lacks is named.
func TestAccess(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		allowed := "false"
		if b, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(b), `"verb":"get"`) {
			allowed = "true"
		}
		_, _ = w.Write([]byte(`{"status":{"allowed":` + allowed + `}}`))
	}))
	t.Cleanup(server.Close)
	client, err := ownpod.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	of := ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: "games", Name: "sidecar-result"}
	needs := []selftest.Need{{Verb: "get", Of: of}, {Verb: "patch", Of: of}, {Verb: "get", Of: of}}
	report := selftest.Access(t.Context(), client, needs)
	if len(report) != 2 || !report[0].OK || report[1].OK || !strings.Contains(report[1].Name, "patch") {
		t.Errorf("%+v after %d questions", report, asked)
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(broken.Close)
	if client, err = ownpod.NewClient(&rest.Config{Host: broken.URL}); err != nil {
		t.Fatal(err)
	}
	if report = selftest.Access(t.Context(), client, needs[:1]); report[0].OK || report[0].Detail == "" {
		t.Errorf("where it may not be asked: %+v", report)
	}
	if report = selftest.Access(t.Context(), nil, needs[:1]); report[0].OK || report[0].Detail != "no service account" {
		t.Errorf("without an API server: %+v", report)
	}
}

func TestVolume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if diff := cmp.Diff(map[string]bool{"write " + dir: true, "rename in " + dir: true}, outcomes(selftest.Volume(dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
	missing := filepath.Join(dir, "none")
	report := selftest.Volume(missing)
	if report[0].OK || report[1].OK || !strings.Contains(report[0].Detail, "no such file") || report[1].Detail != "" {
		t.Errorf("%+v", report)
	}
}
