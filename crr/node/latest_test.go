package node

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

func requestAt(version string) *crr.Request {
	return &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "r", UID: "u", ResourceVersion: version, Labels: map[string]string{v1beta1.LabelPodUID: "p"},
	}, Spec: v1beta1.ContainerRecreateRequestSpec{PodName: "web"}}
}

func TestOwnWriteIsUsedUntilTheWatchHasBroughtIt(t *testing.T) {
	t.Parallel()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{indexPod: indexByPod})
	l := newLatest(indexer)
	put := func(version string) *crr.Request {
		request := requestAt(version)
		if err := indexer.Update(request); err != nil {
			t.Fatal(err)
		}
		return request
	}
	expect := func(when, want string, kept int) {
		t.Helper()
		requests, err := l.ofPod(identity.Pod{Namespace: "shop", Name: "web", UID: "p"})
		if err != nil || len(requests) != 1 || requests[0].ResourceVersion != want {
			t.Fatalf("%s: %+v, %v; want version %s", when, requests, err, want)
		}
		if got := l.get(requestAt("")); got.ResourceVersion != want || len(l.writes) != kept {
			t.Errorf("%s: version %s with %d own writes kept, want %s with %d", when, got.ResourceVersion, len(l.writes), want, kept)
		}
	}
	put("9")
	l.wrote(requestAt("10"))
	expect("before the watch", "10", 1)
	if l.seen(put("9")) {
		t.Error("an older version is taken for our own write")
	}
	expect("an older version", "10", 1)
	if !l.seen(put("10")) {
		t.Error("our own write is not recognized")
	}
	expect("after the watch", "10", 0)
	if l.seen(put("11")) {
		t.Error("the write of another client is taken for ours")
	}
	l.wrote(requestAt("11"))
	expect("a watch that was faster than the answer", "11", 0)

	if err := indexer.Delete(requestAt("11")); err != nil {
		t.Fatal(err)
	}
	l.wrote(requestAt("12"))
	if got := l.get(requestAt("")); got != nil || len(l.writes) != 0 {
		t.Errorf("%+v and %d own writes of a request that is gone", got, len(l.writes))
	}
}

func TestRequestOfTheSameNameIsAnother(t *testing.T) {
	t.Parallel()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{indexPod: indexByPod})
	other := requestAt("1")
	other.UID = "another"
	if err := indexer.Add(other); err != nil {
		t.Fatal(err)
	}
	if got := newLatest(indexer).get(requestAt("1")); got != nil {
		t.Errorf("found %+v for a request that has been deleted and made again", got)
	}
}

func TestRepeatedActIsDelayedUnlessItFailed(t *testing.T) {
	t.Parallel()
	const request, order = types.UID("u"), "stop containerd://1"
	id := identity.ContainerID{Runtime: "containerd", ID: "1"}
	for name, tt := range map[string]struct {
		done  outcome
		order string // of the next act
		want  bool
	}{
		"the same again":             {outcome{order: order}, order, true},
		"another act":                {outcome{order: order}, "stop containerd://2", false},
		"a nudge":                    {outcome{order: ""}, "", false},
		"the same after an error":    {outcome{order: order, err: errors.New("no")}, order, false},
		"the same for a new request": {outcome{}, order, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs()
			a.begin(request, "app", id)
			if !a.busy(id) || !a.of(request)["app"].Running {
				t.Error("an act that has begun is not under way")
			}
			a.end(request, "app", id, tt.done)
			if a.busy(id) || a.of(request)["app"].Running {
				t.Error("an act that has ended is under way")
			}
			if got := a.repeatDelay(request, "app", tt.order, time.Now()) > 0; got != tt.want {
				t.Errorf("delayed %v, want %v", got, tt.want)
			}
		})
	}
}

func TestOnlyKnownRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	a := newActs()
	since := time.Now()
	for _, request := range []types.UID{"kept", "gone"} {
		a.begin(request, "app", identity.ContainerID{})
		a.takenAt(request, since)
	}
	a.keepOnly(map[types.UID]bool{"kept": true})
	if len(a.of("kept")) != 1 || len(a.of("gone")) != 0 || len(a.taken) != 1 || len(a.orders) != 1 {
		t.Errorf("acts %+v, taken %+v", a.requests, a.taken)
	}
	if got := a.takenAt("kept", since.Add(time.Hour)); !got.Equal(since) {
		t.Errorf("taken at %v, want the first time %v", got, since)
	}
}

// Only failures in a row count, and what the last one said is gone after a success; kubelet is woken a limited number of times.
func TestActsRememberFailuresInARowAndNudges(t *testing.T) {
	t.Parallel()
	a, id := newActs(), identity.ContainerID{Runtime: "containerd", ID: "1"}
	for i, step := range []struct {
		done outcome
		want crr.ActionState
	}{
		{outcome{err: errors.New("busy"), transient: true, unbegun: true}, crr.ActionState{Failures: 1, Err: "busy", Transient: true, Unbegun: true}},
		{outcome{err: errors.New("no")}, crr.ActionState{Failures: 2, Err: "no"}},
		{outcome{nudged: true}, crr.ActionState{Touches: 1}},
		{outcome{nudged: true}, crr.ActionState{Touches: 2}},
		{outcome{err: errors.New("no")}, crr.ActionState{Failures: 1, Err: "no", Touches: 2}},
	} {
		a.begin("u", "app", id)
		a.end("u", "app", id, step.done)
		got := a.of("u")["app"]
		if got.Done.IsZero() {
			t.Errorf("step %d: no time of its end", i)
		}
		if got.Done = (time.Time{}); got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
	if other := a.of("u")["log"]; other != (crr.ActionState{}) {
		t.Errorf("another container: %+v", other)
	}
}
