package node

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// listing is a runtime that lists these containers, newest first, and answers for each of them, or with an error.
type listing struct {
	Runtime
	containers []cri.Container
	errs       map[string]error // of ContainerStatus, by ID
	removed    []string
	ip         string
	ipError    error
}

func (l *listing) ListContainers(context.Context, string) ([]cri.Container, error) {
	return l.containers, nil
}

func (l *listing) ContainerStatus(_ context.Context, id string) (cri.ContainerStatus, error) {
	if err := l.errs[id]; err != nil {
		return cri.ContainerStatus{}, err
	}
	for _, c := range l.containers {
		if c.ID == id {
			return cri.ContainerStatus{Container: c, RestartCount: 7}, nil
		}
	}
	return cri.ContainerStatus{}, cri.ErrNotFound
}

func (l *listing) RemoveContainer(_ context.Context, id string) error {
	l.removed = append(l.removed, id)
	return nil
}

func (l *listing) SandboxIP(context.Context, string) (string, error) { return l.ip, l.ipError }

func listed(id, name, pod string, state identity.State) cri.Container {
	return cri.Container{ID: id, Name: name, PodNamespace: "shop", PodName: pod, State: state}
}

func webPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
}

// What is listed as an instance of a container may be stopped.
func TestOnlyInstancesOfTheRequestedContainersAreSeen(t *testing.T) {
	t.Parallel()
	runtime := &listing{containers: []cri.Container{
		listed("9", "app", "other", identity.StateRunning), listed("8", "log", "web", identity.StateRunning), listed("3", "log", "web", identity.StateExited),
		{ID: "7", Name: "app", PodNamespace: "other", PodName: "web", State: identity.StateRunning},
		listed("6", "app", "web", identity.StateExited), listed("5", "app", "web", identity.StateExited), listed("4", "app", "web", identity.StateRunning),
	}}
	for name, tt := range map[string]struct {
		errs   map[string]error
		want   []string // IDs of the instances of app
		failed bool
	}{
		"all answer":                   {want: []string{"6", "5", "4"}},
		"the newest was just removed":  {errs: map[string]error{"6": cri.ErrNotFound}, want: []string{"5", "4"}},
		"the runtime does not answer":  {errs: map[string]error{"6": cri.ErrUnavailable}, failed: true},
		"an older one is not asked of": {errs: map[string]error{"5": cri.ErrUnavailable}, want: []string{"6", "5", "4"}},
	} {
		of := *runtime
		of.errs = tt.errs
		request := &crr.Request{Spec: v1beta1.ContainerRecreateRequestSpec{Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}}}
		observed, err := newObserver(configOf(&of)).Containers(t.Context(), request, webPod(), nil)
		if (err != nil) != tt.failed {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for i, instance := range observed.Instances["app"] {
			got = append(got, instance.ID.ID)
			if closely := instance.RestartCount == 7; closely != (i == 0) || instance.ID.Runtime != fakecri.Name {
				t.Errorf("%s: instance %d: %+v; the newest alone is looked at closely", name, i, instance)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || len(observed.Instances) > 1 {
			t.Errorf("%s: %+v (-want +got):\n%s", name, observed, diff)
		}
		if beside := observed.Beside["log"]; !tt.failed && (beside.ID.ID != "8" || beside.State != identity.StateRunning || len(observed.Beside) != 1) {
			t.Errorf("%s: beside it %+v, want the newest instance of log", name, observed.Beside)
		}
	}
}

// answer is an API server with one pod, or an error.
type answer struct {
	PodAPI
	pod *corev1.Pod
	err error
}

func (a answer) Pod(context.Context, string, string) (*corev1.Pod, error) { return a.pod, a.err }

// A pod of the same name may be another one, or on another node.
func TestPodOfARequestIsThatOfItsUIDOnThisNode(t *testing.T) {
	t.Parallel()
	other := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := webPod()
		change(pod)
		return pod
	}
	refused, gone := errors.New("connection refused"), apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")
	for name, tt := range map[string]struct {
		cached *corev1.Pod
		api    answer
		found  bool
		err    error
	}{
		"in the cache":                   {cached: webPod(), api: answer{err: refused}, found: true},
		"not in the cache yet":           {api: answer{pod: webPod()}, found: true},
		"the cache has the one before":   {cached: other(func(p *corev1.Pod) { p.UID = "uid-before" }), api: answer{pod: webPod()}, found: true},
		"another has its name":           {api: answer{pod: other(func(p *corev1.Pod) { p.UID = "uid-next" })}},
		"on another node":                {api: answer{pod: other(func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })}},
		"deleted":                        {api: answer{err: gone}},
		"the API server does not answer": {api: answer{err: refused}, err: refused},
	} {
		config := configOf(nil)
		config.PodAPI = tt.api
		if tt.cached != nil {
			if err := config.Pods.GetStore().Add(tt.cached); err != nil {
				t.Fatal(err)
			}
		}
		pod, err := newObserver(config).Pod(t.Context(), identity.Pod{Namespace: "shop", Name: "web", UID: "uid-web"})
		if !errors.Is(err, tt.err) || (pod != nil) != tt.found || pod != nil && pod.UID != "uid-web" {
			t.Errorf("%s: %v, %v", name, pod, err)
		}
	}
}

// Removal kills what runs.
func TestRemovalOfInstances(t *testing.T) {
	t.Parallel()
	ids := func(all ...string) (list []identity.ContainerID) {
		for _, id := range all {
			list = append(list, identity.ContainerID{Runtime: fakecri.Name, ID: id})
		}
		return list
	}
	containers := []cri.Container{listed("1", "app", "web", identity.StateExited), listed("2", "app", "web", identity.StateRunning), listed("3", "app", "web", identity.StateExited)}
	for name, tt := range map[string]struct {
		remove    []string
		errs      map[string]error
		removed   []string
		failed    bool
		transient bool
	}{
		"two":                       {remove: []string{"1", "3"}, removed: []string{"1", "3"}},
		"none":                      {},
		"one that is gone":          {remove: []string{"4", "1"}, removed: []string{"1"}},
		"one that runs":             {remove: []string{"2", "1"}, failed: true},
		"the runtime is away":       {remove: []string{"1"}, errs: map[string]error{"1": cri.ErrUnavailable}, failed: true, transient: true},
		"the daemon is being ended": {remove: []string{"1"}, errs: map[string]error{"1": context.Canceled}, failed: true, transient: true},
		"another error":             {remove: []string{"1"}, errs: map[string]error{"1": errors.New("shim says no")}, failed: true},
	} {
		runtime := &listing{containers: containers, errs: tt.errs}
		action := stopOf(crr.Stop{})
		action.Stop, action.Start = nil, &crr.Start{Container: "app", Remove: ids(tt.remove...)}
		done := actorOn(t, runtime).Act(t.Context(), action)
		if (done.Err != nil) != tt.failed || done.Transient != tt.transient {
			t.Errorf("%s: %+v", name, done)
		}
		if diff := cmp.Diff(tt.removed, runtime.removed); diff != "" {
			t.Errorf("%s: removed (-want +got):\n%s", name, diff)
		}
	}
}

func TestHookGoesToTheSandboxOrForTheHostNetworkToThePodIP(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sandbox, status string
		host            bool
		err             error
		want            string
	}{
		"of the sandbox":                   {sandbox: "10.0.0.1", status: "10.0.0.2", want: "10.0.0.1"},
		"a pod in the node's network":      {host: true, status: "192.0.2.1", want: "192.0.2.1"},
		"not in the node's network":        {status: "192.0.2.1"},
		"the runtime does not say":         {err: cri.ErrUnavailable, status: "10.0.0.2"},
		"nobody knows":                     {host: true},
		"nobody knows, and why is unknown": {err: cri.ErrUnavailable},
	} {
		pod := webPod()
		pod.Status.PodIP, pod.Spec.HostNetwork = tt.status, tt.host
		got, err := hookRuntime{&listing{ip: tt.sandbox, ipError: tt.err}}.PodIP(t.Context(), pod)
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, tt.err) && tt.err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}
