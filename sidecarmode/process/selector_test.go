package process_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/sidecarmode/process"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/testkit/procfs"
)

// The KEP's processName means a program: another one that has the name among its arguments is never meant.
func TestProcessNameNeverMeansAnotherProgram(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	for pid, cmdline := range map[int]string{
		2: "nginx: master process nginx -g daemon off;\x00", 3: "nginx: worker process\x00",
		4: "vim\x00/etc/nginx/nginx: master\x00", 5: "tail\x00-f\x00/var/log/server\x00",
		6: "/usr/sbin/server\x00--port\x0080\x00", 7: "sh\x00-c\x00server --port 80\x00", 8: "grep\x00gone\x00",
		9: "/opt/a b/odd\x00", 10: "/usr/bin/serverless\x00",
	} {
		tree.Put(procfs.Process{PID: pid, PPID: 1, Start: uint64(pid), Comm: "c", Cmdline: cmdline})
	}
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"nginx: master process nginx": 2, "nginx: worker": 3, "server": 6, "server --port": 6, "/usr/sbin/server": 6,
		"gone": 0, "nginx.conf": 0, "80": 0, "sbin/server": 0, "log/server": 0,
	} {
		finder := process.Finder{Config: process.Config{ProcessName: name}, FS: fs, Observed: func() *corev1.Pod { return nil }}
		found, err := finder.Find(t.Context())
		switch {
		case want == 0 && !errors.Is(err, signal.ErrNotFound):
			t.Errorf("%q: %v %v, want nobody", name, found, err)
		case want != 0 && (err != nil || len(found) != 1 || found[0].PID != want):
			t.Errorf("%q: %v %v, want PID %d", name, found, err, want)
		}
	}
	count := process.Finder{Config: process.Config{ProcessName: "gone"}, FS: fs, Observed: func() *corev1.Pod { return nil }}
	if n, err := count.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
}

// The instance of a container is the one that the pod's status names.
func TestContainerOfAProcess(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://a1"}, {Name: "bad", ContainerID: "x"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "native", ContainerID: "containerd://b2"}},
	}}
	for name, want := range map[string]string{"app": "a1", "native": "b2", "bad": "", "none": ""} {
		id, err := process.ContainerID(pod, name)
		if (err == nil) != (want != "") || err == nil && id.ID != want {
			t.Errorf("%s: %v %v", name, id, err)
		}
	}
	if _, err := process.ContainerID(nil, "app"); !errors.Is(err, process.ErrNoStatus) {
		t.Errorf("pod not read: %v", err)
	}
}

// A selector needs a condition, and says what is wrong with one.
func TestSelectorsAreChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config process.Config
		ok     bool
	}{
		"nothing":             {process.Config{}, false},
		"container alone":     {process.Config{ContainerName: "app"}, true},
		"name":                {process.Config{ProcessName: "nginx"}, true},
		"unknown choice":      {process.Config{ProcessName: "nginx", WhichOfSeveral: "some"}, false},
		"choice":              {process.Config{ProcessName: "nginx", WhichOfSeveral: "oldest"}, true},
		"regular expression":  {process.Config{CmdlineRegexp: "("}, false},
		"relative executable": {process.Config{Executable: "nginx"}, false},
	} {
		if err := tt.config.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
