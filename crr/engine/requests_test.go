package engine

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

func requestAt(version string) *crr.Request {
	return &crr.Request{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: "u", ResourceVersion: version}}
}

func TestOwnWriteIsUsedUntilTheWatchHasDeliveredIt(t *testing.T) {
	t.Parallel()
	r := newRequests()
	expect := func(when, want string) {
		t.Helper()
		if all := r.ofPod(key); len(all) != 1 || all[0].ResourceVersion != want || r.get("u").ResourceVersion != want {
			t.Errorf("%s: %+v, want version %s", when, all, want)
		}
	}
	for _, step := range []struct {
		when, watch string
		isNew       bool
		write, want string
	}{
		{when: "first", watch: "9", isNew: true, want: "9"},
		{when: "before the watch", write: "10", want: "10"},
		{when: "an older version", watch: "9", want: "10"},
		{when: "our own write", watch: "10", want: "10"},
		{when: "the write of another client", watch: "11", isNew: true, want: "11"},
		{when: "a watch that was faster than the answer", write: "11", want: "11"},
		{when: "an answer that is late", write: "10", want: "11"},
		{when: "versions that cannot be compared", watch: "x", isNew: true, want: "x"},
	} {
		if step.watch != "" && r.Put(key, requestAt(step.watch)) != step.isNew {
			t.Errorf("%s: new %t", step.when, !step.isNew)
		}
		if step.write != "" {
			r.wrote(requestAt(step.write))
		}
		expect(step.when, step.want)
	}
	r.Remove(requestAt("1"))
	r.wrote(requestAt("12"))
	if got := r.get("u"); got != nil || len(r.ofPod(key)) != 0 || len(r.byPod) != 0 {
		t.Errorf("%+v is left of a request that is gone", got)
	}
}

// A request that is deleted and created again under its name is another one; one whose pod changes is kept once.
func TestRequestsAreKeptByUIDAndPod(t *testing.T) {
	t.Parallel()
	r, other := newRequests(), requestAt("5")
	other.UID = "another"
	r.Put(key, requestAt("4"))
	r.Put(key, other)
	r.Remove(requestAt("1"))
	if r.get("u") != nil || r.get("another") != other {
		t.Error("want the request that was created last, and not the one before")
	}
	moved := other.DeepCopy()
	moved.ResourceVersion = "6"
	r.Put(identity.Pod{Name: "db"}, moved)
	if len(r.ofPod(key)) != 0 || len(r.Pods()) != 1 {
		t.Errorf("pods %v", r.Pods())
	}
}

func TestRepeatedActionIsDelayedUnlessItFailed(t *testing.T) {
	t.Parallel()
	stop := func(uid types.UID, n int) Action {
		request := requestAt("1")
		request.UID = uid
		return Action{Request: request, Stop: &crr.Stop{Container: "app", ID: instanceID(n)}}
	}
	touch := Action{Request: requestAt("1"), Start: &crr.Start{Container: "app", Touch: true}}
	for name, tt := range map[string]struct {
		done, next Action
		err        error
		want       bool
	}{
		"the same again":             {done: stop("u", 1), next: stop("u", 1), want: true},
		"another action":             {done: stop("u", 1), next: stop("u", 2)},
		"a touch":                    {done: touch, next: touch},
		"the same after an error":    {done: stop("u", 1), next: stop("u", 1), err: errors.New("no")},
		"the same for a new request": {done: stop("earlier", 1), next: stop("u", 1)},
	} {
		r := newRequests()
		for _, action := range []Action{tt.done, tt.next} {
			r.Put(key, action.Request)
		}
		r.actionBegins(tt.done)
		if known, stopping := r.take(tt.done.Request.UID, time.Now()); !known.states["app"].Running || stopping[instanceID(1)] != (tt.done.Stop != nil) {
			t.Errorf("%s: an action that has begun is not in progress", name)
		}
		r.actionEnded(tt.done, Result{Err: tt.err}, tt.done.key())
		known, stopping := r.take(tt.next.Request.UID, time.Now())
		if known.states["app"].Running || len(stopping) > 0 {
			t.Errorf("%s: an action that has ended is in progress", name)
		}
		if got := known.repeatDelay(tt.next, time.Now()) > 0; got != tt.want {
			t.Errorf("%s: delayed %t, want %t", name, got, tt.want)
		}
	}
}

// Only failures in a row count, and the last error is forgotten after a success; touches are counted.
func TestFailuresInARowAndTouchesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRequests()
	action := Action{Request: requestAt("1"), Stop: &crr.Stop{Container: "app", ID: instanceID(1)}}
	r.Put(key, action.Request)
	for i, step := range []struct {
		result Result
		want   crr.ActionState
	}{
		{Result{Err: errors.New("busy"), Transient: true, Unbegun: true}, crr.ActionState{Failures: 1, Err: "busy", Transient: true, Unbegun: true}},
		{Result{Err: errors.New("no")}, crr.ActionState{Failures: 2, Err: "no"}},
		{Result{Touched: true}, crr.ActionState{Touches: 1}},
		{Result{Touched: true}, crr.ActionState{Touches: 2}},
		{Result{Err: errors.New("no")}, crr.ActionState{Failures: 1, Err: "no", Touches: 2}},
	} {
		r.actionBegins(action)
		r.actionEnded(action, step.result, action.key())
		known, _ := r.take("u", time.Now())
		got := known.states["app"]
		if got.Done.IsZero() {
			t.Errorf("step %d: no time of its end", i)
		}
		if got.Done = (time.Time{}); got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

// What was done for a request is kept when the watch delivers it again, and forgotten when it has ended.
func TestProgressBelongsToARequest(t *testing.T) {
	t.Parallel()
	r, since := newRequests(), time.Now()
	r.Put(key, requestAt("1"))
	r.take("u", since)
	r.droppedIDs("u")
	r.Put(key, requestAt("2"))
	if known, _ := r.take("u", since.Add(time.Hour)); !known.taken.Equal(since) || !known.dropsIDs {
		t.Errorf("%+v, want taken at the first time and what was learned", known)
	}
	r.finish("u")
	if known, _ := r.take("u", since.Add(time.Hour)); known.taken.Equal(since) || known.dropsIDs {
		t.Errorf("%+v after its end", known)
	}
	r.with("another", func(*progress) { t.Error("a request that does not exist has progress") })
}

// The same action twice means that it had no effect; a touch of the pod has no visible effect.
func TestActionsThatAreTheSame(t *testing.T) {
	t.Parallel()
	stop := func(n int) string { return Action{Stop: &crr.Stop{ID: instanceID(n)}}.key() }
	remove := func(n ...int) string {
		start := &crr.Start{}
		for _, one := range n {
			start.Remove = append(start.Remove, instanceID(one))
		}
		return Action{Start: start}.key()
	}
	if a := stop(1); a == "" || a != stop(1) || a == stop(2) || a == remove(1) {
		t.Errorf("stop: %q", a)
	}
	if a := remove(1); a == "" || a != remove(1) || a == remove(1, 2) {
		t.Errorf("removal: %q", a)
	}
	if a := (Action{Start: &crr.Start{Touch: true}}).key(); a != "" {
		t.Errorf("touch: %q", a)
	}
}
