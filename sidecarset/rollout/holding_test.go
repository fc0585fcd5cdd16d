package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

func in(namespace string) func(*rollout.Pod) {
	return func(p *rollout.Pod) { p.Key.Namespace, p.UID = namespace, types.UID(namespace+"/"+p.Key.Name) }
}

// namespaces returns the namespaces of the selected pods.
func namespaces(s rollout.Selection) string {
	var of []string
	for _, key := range s.Pods {
		of = append(of, key.Namespace)
	}
	return fmt.Sprint(of)
}

// A tenant forges the record of an update, or lets his pods become not ready after one: the pods of others wait for them for ten
// minutes, his own go on to.
func TestPodsOfOneNamespaceHoldUpOthersForTenMinutes(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]change{
		"an update that does not end": func(p *rollout.Pod) { updated(p); inFlight(p) },
		"not ready after an update":   func(p *rollout.Pod) { updated(p); notReady(p) },
		"a restart that does not end": func(p *rollout.Pod) { updated(p); underWay(p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &rollout.Strategy{}
			f := fleetOf(s, kind{3, []change{in("shop")}})
			f.Set(pod(8, in("mallory")))
			f.Set(pod(9, in("mallory"), forged))
			for _, step := range []struct {
				after, again time.Duration // again: after so long; zero: not looked at
				want         string
			}{
				{0, 10 * time.Minute, "[]"},
				{10*time.Minute - 1, 10 * time.Minute, "[]"},
				{10 * time.Minute, 0, "[shop]"},
			} {
				got := f.Select(s, now.Add(step.after), nil)
				if namespaces(got) != step.want || got.Held != rollout.HoldUnavailable || step.again > 0 && !got.Again.Equal(now.Add(step.again)) {
					t.Errorf("after %s: %+v", step.after, got)
				}
			}
		})
	}
}

// A faulty sidecar makes no more than twice as many pods not ready as may be, in however many namespaces.
func TestPodsOfTwoNamespacesGoOnToHoldUpOthers(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MaxUnavailable: number(2)}
	f := rollout.NewFleet(nil)
	for i := range 40 {
		f.Set(pod(i, in(fmt.Sprint("n-", i%10))))
	}
	broken := 0
	for at := now; at.Before(now.Add(3 * time.Hour)); at = at.Add(time.Minute) {
		for _, key := range f.Select(s, at, nil).Pods {
			p, _ := f.Get(key)
			p.State = rollout.Updated
			notReady(&p)
			f.Set(p)
			broken++
		}
	}
	if broken < 3 || broken > 4 {
		t.Errorf("%d pods are not ready, want some more than maxUnavailable 2, and at most 4", broken)
	}
	f = fleetOf(s, kind{40, nil}) // of one namespace: all others are its own
	broken = 0
	for at := now; at.Before(now.Add(time.Hour)); at = at.Add(time.Minute) {
		for _, key := range f.Select(s, at, nil).Pods {
			p, _ := f.Get(key)
			p.State = rollout.Updated
			notReady(&p)
			f.Set(p)
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("%d pods of one namespace are not ready, want 2", broken)
	}
}

// What this process has updated is not forged: the sidecar may be faulty, and no other namespace gets it.
func TestAPodThatThisProcessHasUpdatedHoldsUpOthersUntilItIsReady(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := fleetOf(s, kind{3, []change{in("shop")}})
	ours := func(p *rollout.Pod) { p.Ours = true }
	f.Set(pod(9, in("game"), updated, notReady, ours))
	for _, after := range []time.Duration{0, 10 * time.Minute, 24 * time.Hour} {
		if got := f.Select(s, now.Add(after), nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable || !got.Again.IsZero() {
			t.Errorf("after %s: %+v", after, got)
		}
	}
	f.Set(pod(9, in("game"), updated, ours))
	if got := namespaces(f.Select(s, now.Add(25*time.Hour), nil)); got != "[shop]" {
		t.Errorf("when it is ready: %s", got)
	}
}

// The ten minutes begin anew when the pod has been available.
func TestAPodThatIsAvailableAgainIsWaitedForAnew(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := fleetOf(s, kind{3, []change{in("shop")}})
	hold := func() { f.Set(pod(9, in("mallory"), updated, notReady)) }
	hold()
	f.Select(s, now, nil)
	f.Set(pod(9, in("mallory"), updated))
	f.Set(pod(1, in("shop"), denied)) // so that nothing is changed meanwhile
	if got := namespaces(f.Select(s, now.Add(5*time.Minute), nil)); got != "[shop]" {
		t.Errorf("while it is available: %s", got)
	}
	hold()
	if got := namespaces(f.Select(s, now.Add(11*time.Minute), nil)); got != "[]" {
		t.Errorf("not available again: %s", got)
	}
	if got := namespaces(f.Select(s, now.Add(21*time.Minute), nil)); got != "[shop]" {
		t.Errorf("ten minutes later: %s", got)
	}
}

// Also if there was nothing to be updated when it was available.
func TestAPodThatWasAvailableBetweenTwoUpdatesIsWaitedForAnew(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := fleetOf(s, kind{1, []change{in("shop")}})
	f.Set(pod(9, in("mallory"), updated, notReady))
	f.Select(s, now, nil)
	f.Set(pod(0, in("shop"), updated))
	f.Set(pod(9, in("mallory"), updated))
	f.Select(s, now.Add(time.Minute), nil)
	f.Set(pod(0, in("shop")))
	f.Set(pod(9, in("mallory"), updated, notReady))
	if got := namespaces(f.Select(s, now.Add(11*time.Minute), nil)); got != "[]" {
		t.Errorf("%s", got)
	}
}
