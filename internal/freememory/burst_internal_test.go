package freememory

import (
	"slices"
	"testing"
)

func TestMemoryIsFreedAfterABurst(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		allocated []uint64 // in MiB, between two looks
		freed     []int    // after which looks
	}{
		"idle":                              {[]uint64{1, 0, 2, 1, 1}, nil},
		"a little":                          {[]uint64{4, 1, 1}, nil},
		"a burst":                           {[]uint64{60, 80, 1, 1}, []int{2}},
		"two bursts":                        {[]uint64{60, 1, 1, 60, 0}, []int{1, 4}},
		"Events are still sent after it":    {[]uint64{60, 80, 4, 4, 4, 1}, []int{2, 5}},
		"probes that always allocate a lot": {[]uint64{40, 41, 39, 40, 42}, nil},
		"it grows":                          {[]uint64{3, 10, 30, 100, 12, 1}, []int{4}},
	} {
		var b burst
		var total uint64
		var freed []int
		for i, n := range tt.allocated {
			total += n * mib
			if b.over(total) {
				freed = append(freed, i)
			}
		}
		if !slices.Equal(freed, tt.freed) {
			t.Errorf("%s: freed after %v, want %v", name, freed, tt.freed)
		}
	}
}
