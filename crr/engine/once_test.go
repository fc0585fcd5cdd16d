package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/crr"
)

// kinds are the processes and CRDs under which a request must stop exactly one instance, whatever fails meanwhile.
var kinds = map[string]struct {
	change func(*world)
	want   string // the result
	// stops is the number of the instance that is stopped.
	stops int
}{
	"daemon":                                  {func(*world) {}, "succeeded Succeeded", 1},
	"daemon, the CRD drops IDs":               {func(w *world) { w.dropsIDs = true }, "succeeded Succeeded", 1},
	"daemon, forced":                          {func(w *world) { w.forced() }, "succeeded Succeeded", 2},
	"daemon, forced, the CRD drops IDs":       {func(w *world) { w.forced(); w.dropsIDs = true }, "succeeded Succeeded", 2},
	"sidecar":                                 {func(w *world) { w.sidecar = true }, "succeeded Succeeded", 1},
	"sidecar, the CRD drops IDs":              {func(w *world) { w.sidecar, w.dropsIDs = true, true }, "succeeded Succeeded", 1},
	"sidecar, forced":                         {func(w *world) { w.forced(); w.sidecar = true }, "succeeded Succeeded", 2},
	"sidecar, forced, nothing to remember by": {func(w *world) { w.forced(); w.sidecar, w.dropsIDs = true, true }, "failed NotPossibleHere", 0},
}

// forced makes the request restart the second instance: the first one has ended since the request was admitted. Kubelet
// backs off from the end of the second, so a daemon removes it.
func (w *world) forced() {
	w.instances = nil
	w.start()
	w.change(func(r *crr.Request) { r.Spec.Strategy.ForceRecreate = true })
}

// check reports what a user would notice.
func (w *world) check(t *testing.T, what, want string, stops int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	result, reason := crr.Result(w.request.Status)
	var instances []string
	if stops > 0 {
		instances = []string{instanceID(stops).String()}
	}
	if got := result + " " + reason; got != want || !cmp.Equal(instances, w.stopped) || len(w.faults) > 0 {
		t.Errorf("%s: %s, stopped %q, want %s and %q; %q: %+v", what, got, w.stopped, want, instances, w.faults, w.request.Status)
	}
}

// A process fails or crashes at every call of the container runtime or the API server, before or after its effect; the
// next one continues from what is stored.
func TestARequestStopsOneInstanceWhateverCallFails(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		for _, fault := range []string{crashBefore, crashAfter, fails, loses} {
			t.Run(name+", "+fault, func(t *testing.T) {
				t.Parallel()
				calls := 0
				for at, hit := 1, true; hit; at++ {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld()
						kind.change(w)
						p := &process{fault: fault, at: at}
						w.run(t.Context(), p)
						hit = p.calls >= at
						if p.crashed {
							w.run(t.Context(), &process{})
						}
						w.check(t, fmt.Sprintf("at call %d", at), kind.want, kind.stops)
						time.Sleep(10 * time.Second) // kubelet
					})
					calls = at
				}
				if calls < 4 {
					t.Errorf("only %d calls: the request was not carried out", calls)
				}
			})
		}
	}
}

// The same with many faults in one request.
func TestARequestStopsOneInstanceWhateverCallsFail(t *testing.T) {
	t.Parallel()
	faults := []string{crashBefore, crashAfter, fails, loses}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 0))
					w := newWorld()
					kind.change(w)
					var history []string
					for range 6 {
						p := &process{fault: faults[random.IntN(len(faults))], at: 1 + random.IntN(12)}
						history = append(history, fmt.Sprintf("%s %d", p.fault, p.at))
						w.run(t.Context(), p)
					}
					w.run(t.Context(), &process{})
					w.check(t, fmt.Sprintf("seed %d, %q", seed, history), kind.want, kind.stops)
					time.Sleep(10 * time.Second) // kubelet
				})
			}
		})
	}
}

// An API server, or an admission webhook, that drops what it has answered to store.
func TestNothingIsStoppedWithoutARecord(t *testing.T) {
	t.Parallel()
	for _, sidecar := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.drops, w.sidecar = true, sidecar
			w.forced()
			w.run(t.Context(), &process{})
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.stopped) > 0 {
				t.Errorf("sidecar %t: stopped %q, and no process could know that after a crash", sidecar, w.stopped)
			}
		})
	}
}
