package meter

import (
	"testing"
	"time"
)

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
