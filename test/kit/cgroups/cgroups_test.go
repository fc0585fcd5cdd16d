package cgroups

import "testing"

func TestCgroupOfAProcess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, folder, top string }{
		"version 1": {"9:name=systemd:/a/b\n2:cpu,cpuacct:/a/b/c\n0::/a/b\n", "/sys/fs/cgroup/cpuacct/a/b/c", "/sys/fs/cgroup/cpuacct/a"},
		"version 2": {"0::/system.slice/x.scope\n", "/sys/fs/cgroup/system.slice/x.scope", "/sys/fs/cgroup/system.slice"},
		"both":      {"0::/a/x\n2:cpuacct:/a/y\n", "/sys/fs/cgroup/cpuacct/a/y", "/sys/fs/cgroup/cpuacct/a"},
		"the root":  {"2:cpuacct:/\n0::/\n", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpuacct"},
		"neither":   {text: "1:memory:/a\n"},
		"gibberish": {text: "gibberish\n"},
	} {
		group, err := Parse(tc.text, "cpuacct")
		if (err != nil) != (tc.folder == "") || err == nil && (group.Folder() != tc.folder || group.Top().Folder() != tc.top) {
			t.Errorf("%s: %s, below %s, %v; want %s, below %s", name, group.Folder(), group.Top().Folder(), err, tc.folder, tc.top)
		}
	}
}
