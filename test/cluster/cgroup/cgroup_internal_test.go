package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mountinfo string
		want      Tree
	}{
		"v2": {
			mountinfo: "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
			want:      Tree{Unified: true, mounts: []string{"/sys/fs/cgroup"}},
		},
		"v1: pids tracks processes": {
			mountinfo: "1 2 0:1 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
				"3 1 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"4 1 0:3 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
			want: Tree{mounts: []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu"}, cpu: "/sys/fs/cgroup/cpu"},
		},
		"hybrid: cgroup2 beside v1": {
			mountinfo: "4 1 0:3 / /sys/fs/cgroup/pids rw shared:1 master:2 - cgroup cgroup rw,pids\n" +
				"5 1 0:4 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			want: Tree{mounts: []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"}},
		},
		"no pids controller": {
			mountinfo: "3 1 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			want:      Tree{mounts: []string{"/sys/fs/cgroup/cpu"}, cpu: "/sys/fs/cgroup/cpu"},
		},
		"cut short": {mountinfo: "3 1 0:2 - cgroup\n\nx", want: Tree{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, parse(test.mountinfo), cmp.AllowUnexported(Tree{})); diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		if tree := parse(mountinfo); tree.Unified && len(tree.mounts) != 1 {
			t.Errorf("v2 has %d hierarchies", len(tree.mounts))
		}
	})
}
