package turns

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from    int
		ratio   float64
		waiting bool
		samples int
		want    int
	}{
		"room and work":           {4, 0.95, true, 10, 5},
		"room, but nobody waits":  {4, 0.95, false, 100, 4},
		"neither":                 {4, 0.7, true, 100, 4},
		"crowded":                 {8, 0.5, true, 16, 6},
		"crowded and nobody":      {8, 0.5, false, 16, 6},
		"too few to tell":         {8, 0.1, true, 15, 8},
		"never below two":         {2, 0.1, true, 1000, 2},
		"never above the maximum": {31, 1, true, 10000, 32},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimit(2)
			l.value = tc.from
			for range tc.samples {
				l.observe(tc.ratio, tc.waiting)
			}
			if l.value != tc.want {
				t.Errorf("limit %d, want %d", l.value, tc.want)
			}
		})
	}
	waited := newLimit(2)
	waited.value = 4
	for i := range 10 {
		waited.observe(1, i == 0)
	}
	if waited.value != 5 {
		t.Errorf("limit %d after one of ten has waited, want 5", waited.value)
	}
	if l := newLimit(0); l.value != 2 || l.max != 16 {
		t.Errorf("without CPUs: %+v", l)
	}
}

func TestPaceComparesACommandWithItself(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	q := New(8, 100)
	var p Pace
	mean := func() float64 {
		defer func() { q.limit.samples, q.limit.sum = 0, 0 }()
		return q.limit.sum / float64(max(q.limit.samples, 1))
	}
	p.Observe(q, time.Second, false) // never ended: it may be meant not to
	p.Observe(q, 100*ms, true)       // the first one is what the others are compared with
	if q.limit.samples != 0 {
		t.Errorf("%d samples", q.limit.samples)
	}
	p.Observe(q, 200*ms, true)
	if got := mean(); got < 0.49 || got > 0.52 {
		t.Errorf("twice as slow: %g", got)
	}
	p.Observe(q, 50*ms, true)
	p.Observe(q, 100*ms, true)
	if got := mean(); got < 0.74 || got > 0.76 {
		t.Errorf("faster, then slower again: %g", got)
	}
	p.Observe(q, time.Second, false)
	if q.limit.samples != 1 {
		t.Errorf("%d samples of one that did not end", q.limit.samples)
	}
	if got := mean(); got != 0 {
		t.Errorf("did not end: %g", got)
	}
	for range 1000 { // it has become slower for good
		p.Observe(q, 100*ms, true)
	}
	q.limit.samples, q.limit.sum = 0, 0
	p.Observe(q, 100*ms, true)
	if got := mean(); got < 0.95 {
		t.Errorf("after a thousand runs: %g", got)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tc := range map[string]struct {
		waits []time.Duration // of a probe with a period of 1 s, one for each window
		want  []float64
	}{
		"on time":             {[]time.Duration{0, second / 2, second}, []float64{0, 0, 0}},
		"a little late":       {[]time.Duration{1400 * time.Millisecond}, []float64{0}},
		"late":                {[]time.Duration{2800 * time.Millisecond}, []float64{3}},
		"the same is no news": {[]time.Duration{3 * second, 4 * second, 2500 * time.Millisecond}, []float64{3, 3, 3}},
		"worse":               {[]time.Duration{3 * second, 6 * second}, []float64{3, 6}},
		"better":              {[]time.Duration{9 * second, 3 * second, 1300 * time.Millisecond, second}, []float64{9, 3, 1.5, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d Delay
			now := time.Unix(0, 0)
			for i, wait := range tc.waits {
				before, _ := d.Factor()
				changed := d.Observe(wait, second, now)
				now = now.Add(delayWindow)
				changed = d.Observe(wait, second, now) || changed
				factor, known := d.Factor()
				if factor != tc.want[i] || !known || changed != (factor != before || i == 0) {
					t.Errorf("window %d: %g times, known %t, changed %t; want %g", i+1, factor, known, changed, tc.want[i])
				}
			}
			if changed := d.Reset(); changed != (tc.want[len(tc.want)-1] != 0) {
				t.Errorf("Reset changed: %t", changed)
			}
			if factor, known := d.Factor(); factor != 0 || !known {
				t.Errorf("after Reset: %g times, known %t", factor, known)
			}
		})
	}
	var d Delay
	if _, known := d.Factor(); known || d.Observe(time.Hour, second, time.Unix(0, 0)) {
		t.Error("known at once")
	}
	if !d.Reset() {
		t.Error("without probes it is known")
	}
	d = Delay{}
	for i := range 3 { // without a period nothing can be said
		if d.Observe(0, 0, time.Unix(int64(i)*60, 0)) {
			t.Error("known without a period")
		}
	}
}

func TestLimitGrowsOnlyForThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, o := New(2, 100), Owner{Namespace: "n", Pod: "a"}
		q.Join(o)
		for range 100 {
			q.observe(time.Second, time.Second)
		}
		if load := q.Load(); load != (Load{Limit: 2}) {
			t.Errorf("nobody waits: %+v", load)
		}
		granted := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := q.Take(t.Context(), o)
				granted <- err
			}()
		}
		synctest.Wait()
		if len(granted) != 2 {
			t.Fatalf("%d turns of 2", len(granted))
		}
		for range 10 {
			q.observe(time.Second, time.Second)
		}
		if synctest.Wait(); len(granted) != 3 {
			t.Errorf("the turn that there is more is not given: %+v", q.Load())
		}
	})
}
