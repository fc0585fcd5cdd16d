package meter

import (
	"testing"
	"time"
)

func TestCPUOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ cgroups, want string }{
		"version 1": {
			"9:name=systemd:/refit-1/node-1/kubepods/pod2/3\n2:cpu,cpuacct:/refit-1/node-1/kubepods/pod2/3\n0::/\n",
			"/sys/fs/cgroup/cpuacct/refit-1/cpuacct.usage",
		},
		"version 2":        {"0::/refit-1/node-1/kubepods/pod2/3\n", "/sys/fs/cgroup/refit-1/cpu.stat"},
		"both":             {"0::/refit-1/x\n2:cpuacct:/refit-1/x\n", "/sys/fs/cgroup/cpuacct/refit-1/cpuacct.usage"},
		"in no cgroup":     {"2:cpuacct:/\n0::/\n", ""},
		"not a cgroupfile": {"gibberish\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cpuOf(tc.cgroups)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestParseCPU(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    time.Duration
		ok      bool
	}{
		"cpuacct.usage": {"1500000000\n", 1500 * time.Millisecond, true},
		"cpu.stat":      {"usage_usec 1500000\nuser_usec 1\n", 1500 * time.Millisecond, true},
		"empty":         {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseCPU(tc.content)
			if got != tc.want || (err == nil) != tc.ok {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}
