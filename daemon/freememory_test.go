package daemon

import "testing"

func TestMemoryIsReleasedOnceAfterABurst(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	var b burst
	var allocated uint64
	for i, look := range []struct {
		what      string
		allocated uint64 // since the look before
		want      bool
	}{
		{"the start", 20 * mib, false},
		{"after the start", mib / 10, true},
		{"idle", mib / 10, false},
		{"idle", mib / 10, false},
		{"a little work", 3 * mib, false},
		{"idle", mib / 10, false},
		{"burst", 100 * mib, false},
		{"burst goes on", 100 * mib, false},
		{"after the burst", mib / 10, true},
		{"idle again", mib / 10, false},
	} {
		allocated += look.allocated
		if got := b.over(allocated); got != look.want {
			t.Errorf("look %d (%s): released %v, want %v", i, look.what, got, look.want)
		}
	}
}
