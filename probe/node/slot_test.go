package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestSlotHoldsABatch(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]time.Duration{
		0: time.Second, 10: time.Second, 50: time.Second, 100: 500 * time.Millisecond, 200: 500 * time.Millisecond, 250: 200 * time.Millisecond,
		500: 100 * time.Millisecond, 1000: 50 * time.Millisecond, 2500: 20 * time.Millisecond, 3000: 20 * time.Millisecond,
	} {
		if got := slotFor(rate); got != want || time.Second%got != 0 {
			t.Errorf("%v a second: every %s, want %s", rate, got, want)
		}
	}
}

func TestAlignmentIsToSharedMoments(t *testing.T) {
	t.Parallel()
	m := &Manager{phase: 130 * time.Millisecond}
	align := m.alignTo(func() time.Duration { return 200 * time.Millisecond })
	second := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for due, want := range map[time.Duration]time.Duration{
		0: 130 * time.Millisecond, 130 * time.Millisecond: 0, 131 * time.Millisecond: 199 * time.Millisecond, 500 * time.Millisecond: 30 * time.Millisecond,
		529 * time.Millisecond: time.Millisecond, 530 * time.Millisecond: 0, 999 * time.Millisecond: 131 * time.Millisecond,
	} {
		if got := align(second.Add(due)); got != want {
			t.Errorf("due %s after the second: %s later, want %s", due, got, want)
		}
	}
}

func TestSlotFollowsTheNetworkProbesAtWork(t *testing.T) {
	t.Parallel()
	network := func(period int32) *running {
		r := &running{}
		r.wanted.Probe.PeriodSeconds = period
		return r
	}
	exec := &running{}
	exec.wanted.Probe.Exec = &corev1.ExecAction{}
	for name, tt := range map[string]struct {
		one  *running
		want time.Duration
	}{
		"each second":          {network(1), 500 * time.Millisecond},
		"as often by default":  {network(0), 500 * time.Millisecond},
		"every 10 seconds":     {network(10), time.Second},
		"of the runtime alone": {exec, time.Second},
	} {
		workers := map[string]*running{"exec": exec}
		for i := range 100 {
			workers[fmt.Sprint(i)] = tt.one
		}
		m := &Manager{pods: map[types.UID]*podAtWork{"a": {workers: workers}}}
		if m.tune(); time.Duration(m.slot.Load()) != tt.want {
			t.Errorf("100 probes, %s: every %s, want %s", name, time.Duration(m.slot.Load()), tt.want)
		}
	}
}
