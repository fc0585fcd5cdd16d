package process_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

// The KEP's processName selects a program: another one with the name among its arguments is never selected.
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

// Each condition of the configuration is one of the process, and all have to hold.
func TestConditionsOfAProcess(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a1", 32)
	tree := procfs.NewTree(t)
	for _, p := range []procfs.Process{
		{PID: 2, Start: 10, Comm: "game", Cmdline: "/game\x00serve\x00", Exe: "/game", Cgroup: "0::/../cri-containerd-" + id + ".scope\n"},
		{PID: 3, Start: 20, PPID: 2, Comm: "game", Cmdline: "/game\x00room 1\x00", Exe: "/game", UID: 101},
		{PID: 4, Start: 30, PPID: 2, Comm: "game", Cmdline: "/game\x00room 2\x00", Exe: "/game", UID: 101},
		{PID: 5, Start: 40, Comm: "log", Cmdline: "/log\x00", Exe: "/log", UID: 101},
	} {
		tree.Put(p)
	}
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + id}}}}
	type config = process.Config
	for name, tt := range map[string]struct {
		config config
		found  int // PID; 0: none, or several
		count  int
	}{
		"comm":                  {config{Comm: "log"}, 5, 1},
		"comm of several":       {config{Comm: "game"}, 0, 3},
		"command line":          {config{Cmdline: "/game serve"}, 2, 1},
		"its beginning":         {config{CmdlinePrefix: "/game room"}, 0, 2},
		"regular expression":    {config{CmdlineRegexp: "2$"}, 4, 1},
		"executable":            {config{Executable: "/log"}, 5, 1},
		"user":                  {config{UID: new(101)}, 0, 3},
		"user and executable":   {config{UID: new(101), Executable: "/log"}, 5, 1},
		"container":             {config{ContainerName: "app"}, 2, 1},
		"container and comm":    {config{ContainerName: "app", Comm: "log"}, 0, 0},
		"the oldest":            {config{Comm: "game", WhichOfSeveral: "oldest"}, 2, 1},
		"the newest":            {config{Comm: "game", WhichOfSeveral: "newest"}, 4, 1},
		"the parent":            {config{Comm: "game", WhichOfSeveral: "parent"}, 2, 1},
		"one of one":            {config{Comm: "log", WhichOfSeveral: "only"}, 5, 1},
		"name and another user": {config{ProcessName: "log", UID: new(0)}, 0, 0},
	} {
		finder := process.Finder{Config: tt.config, FS: fs, Observed: func() *corev1.Pod { return pod }}
		found, err := finder.Find(t.Context())
		if (err == nil) != (tt.found != 0) || err == nil && (len(found) != 1 || found[0].PID != tt.found) {
			t.Errorf("%s: %v, %v; want PID %d", name, found, err, tt.found)
		}
		if n, err := finder.Count(t.Context()); err != nil || n != tt.count {
			t.Errorf("%s: %d, %v; want %d processes", name, n, err, tt.count)
		}
	}
	all := process.Finder{Config: config{Comm: "game", WhichOfSeveral: "all"}, FS: fs, Observed: func() *corev1.Pod { return pod }}
	if found, err := all.Find(t.Context()); err != nil || len(found) != 3 {
		t.Errorf("all: %v, %v", found, err)
	}
	gone := process.Finder{Config: config{ContainerName: "gone"}, FS: fs, Observed: func() *corev1.Pod { return pod }}
	if n, err := gone.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("of a container that has not started: %d, %v", n, err)
	}
	if _, err := gone.Find(t.Context()); !errors.Is(err, process.ErrNoStatus) {
		t.Errorf("of a container that has not started: %v", err)
	}
}
