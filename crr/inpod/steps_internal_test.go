package inpod

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
)

type all = map[string]*v1beta1.ContainerRecreateRequest

// store is the API server: what was written, and the errors of writes by the request's name.
type store struct {
	written    []string
	errors     map[string]error
	conditions bool
}

func (s *store) KeepsConditions() bool { return s.conditions }

func (s *store) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	if err := s.errors[request.Name]; err != nil {
		return nil, err
	}
	s.written = append(s.written, request.Name)
	stored := request.DeepCopy()
	stored.Status = status
	return stored, nil
}

// executorOn is an executor on the world's pod whose stops nobody waits for.
func executorOn(w *world, s *store) *executor {
	return &executor{
		own: "side", processes: w, requests: s, observed: w.observed, clockOffset: w.clockOffset, logger: slog.New(slog.DiscardHandler), warn: func(string, string) {},
		hooks: hook.New(hook.Config{Addresses: podStatus{}}), ended: make(chan stopped, 1), acts: map[string]crr.ActionState{},
	}
}

func (w *world) two() (first, second *crr.Request) {
	first, second = w.request.DeepCopy(), w.request.DeepCopy()
	first.Name, first.UID, second.Name, second.UID = "first", "1", "second", "2"
	second.CreationTimestamp = metav1.NewTime(time.Now())
	second.Spec.ActiveDeadlineSeconds = new(int64(60))
	return first, second
}

func TestSecondRequestOfThePodWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failing map[string]error
		left    string // requests that are known afterwards
		err     bool
	}{
		"both are written":             {left: "first second"},
		"the second cannot be written": {failing: map[string]error{"second": errors.New("refused")}, left: "first second", err: true},
		"the second is deleted":        {failing: map[string]error{"second": ownpod.ErrNotFound}, left: "first"},
		"the first is deleted":         {failing: map[string]error{"first": ownpod.ErrNotFound}, left: "second"},
		"the first cannot be written":  {failing: map[string]error{"first": errors.New("refused")}, left: "first second", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(), &store{errors: tt.failing, conditions: true}
				e := executorOn(w, s)
				first, second := w.two()
				known := all{"first": first, "second": second}
				again, err := e.next(t.Context(), known)
				if (err != nil) != tt.err {
					t.Errorf("error %v", err)
				}
				if got := strings.Join(slices.Sorted(maps.Keys(known)), " "); got != tt.left {
					t.Errorf("known afterwards: %q, want %q", got, tt.left)
				}
				if tt.failing["first"] == nil != e.busy {
					t.Errorf("the first is carried out: %v", e.busy)
				}
				if tt.failing == nil {
					if got := known["second"].Status; got.Phase != v1beta1.ContainerRecreateRequestPending || !strings.Contains(got.Message, "first") {
						t.Errorf("the second is %s: %s", got.Phase, got.Message)
					}
					if want := second.CreationTimestamp.Add(time.Minute); !again.Equal(want) {
						t.Errorf("looks again at %s, want the second's deadline %s", again, want)
					}
				}
				if e.busy {
					<-e.ended
				}
				time.Sleep(2 * time.Second) // kubelet
			})
		})
	}
}

func TestMergeKeepsWhatWeWroteLast(t *testing.T) {
	t.Parallel()
	request := func(uid types.UID, version string) *crr.Request {
		return &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: uid, ResourceVersion: version}}
	}
	for name, tt := range map[string]struct {
		known, listed *crr.Request
		ours          bool
	}{
		"ours is newer":                {request("a", "10"), request("a", "9"), true},
		"the same version":             {request("a", "9"), request("a", "9"), false},
		"theirs is newer":              {request("a", "9"), request("a", "10"), false},
		"another request of the name":  {request("b", "10"), request("a", "9"), false},
		"versions that do not compare": {request("a", "x"), request("a", "9"), false},
	} {
		got := mergeNewer(all{"r": tt.known}, all{"r": tt.listed})["r"]
		if (got == tt.known) != tt.ours {
			t.Errorf("%s: version %s", name, got.ResourceVersion)
		}
	}
	if got := mergeNewer(all{"gone": request("a", "1")}, all{}); len(got) != 0 {
		t.Errorf("a deleted request is kept: %v", got)
	}
}

func TestWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	changed := request.Status
	changed.Message = "m"
	conditions := request.Status
	conditions.Conditions = []metav1.Condition{{Type: "Accepted"}}
	completed := request.DeepCopy()
	completed.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	for name, tt := range map[string]struct {
		request *crr.Request
		status  crr.Status
		keeps   bool
		writes  int
	}{
		"the same":                       {request, request.Status, true, 0},
		"another message":                {request, changed, true, 1},
		"conditions":                     {request, conditions, true, 1},
		"conditions that are not stored": {request, conditions, false, 0},
		"a completed request":            {completed, changed, true, 0},
	} {
		s := &store{conditions: tt.keeps}
		if _, err := executorOn(newWorld(), s).write(t.Context(), tt.request, tt.status); err != nil || len(s.written) != tt.writes {
			t.Errorf("%s: %d writes, %v", name, len(s.written), err)
		}
	}
}

func TestRuntimeOfThePod(t *testing.T) {
	t.Parallel()
	pod := newWorld().pod
	pod.Status.ContainerStatuses[0].ContainerID = ""
	if got := runtimeOf(pod); got != "containerd" {
		t.Errorf("runtime %q", got)
	}
	if got := runtimeOf(&corev1.Pod{}); got != "" {
		t.Errorf("runtime %q of a pod that has not started", got)
	}
}

func TestNeedsAndInit(t *testing.T) {
	t.Parallel()
	p := New().(*Plugin)
	if err := p.Init(t.Context(), nil, plugin.Host{}); err == nil || !strings.Contains(err.Error(), "API server") {
		t.Errorf("without an API server: %v", err)
	}
	if err := p.Init(t.Context(), nil, plugin.Host{API: &ownpod.Client{}}); err == nil || !strings.Contains(err.Error(), "processes") {
		t.Errorf("without processes: %v", err)
	}
	if err := p.Init(t.Context(), nil, plugin.Host{API: &ownpod.Client{}, Processes: &signal.FS{}}); err != nil {
		t.Error(err)
	}
	var verbs []string
	for _, need := range p.Needs().Access {
		verbs = append(verbs, strings.TrimSuffix(need.Verb+" "+need.Of.Resource+"/"+need.Of.Subresource, "/"))
	}
	if got := strings.Join(verbs, ", "); got != "list containerrecreaterequests, watch containerrecreaterequests, patch containerrecreaterequests/status" {
		t.Errorf("needs %s", got)
	}
}

// A request begins without what was done for the one before, and knows of its own stop at once.
func TestActsAreThoseOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := executorOn(w, &store{conditions: true})
		e.uid, e.acts = "before", map[string]crr.ActionState{"app": {Failures: 9, Err: "broken", Done: time.Now()}}
		if _, _, err := e.step(t.Context(), w.pod, w.request); err != nil {
			t.Fatal(err)
		}
		if got := e.acts["app"]; e.uid != "r-1" || got != (crr.ActionState{Running: true}) {
			t.Errorf("request %s: %+v", e.uid, got)
		}
		e.end(<-e.ended)
		if got := e.acts["app"]; got.Running || got.Failures != 0 {
			t.Errorf("%+v", got)
		}
		e.acts["app"] = crr.ActionState{Failures: 2, Err: "broken", Done: time.Now()}
		if _, _, err := e.step(t.Context(), w.observed(), w.request); err != nil {
			t.Fatal(err)
		}
		if got := e.acts["app"].Failures; got != 2 {
			t.Errorf("%d failures are remembered, want 2", got)
		}
		time.Sleep(2 * time.Second) // kubelet
	})
}
