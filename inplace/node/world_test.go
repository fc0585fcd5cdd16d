package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	inplacenode "github.com/refit-project/refit/inplace/node"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a pod with containers, a runtime and a kubelet that starts what was stopped.
type world struct {
	t      *testing.T
	source *cachetesting.FakeControllerSource

	mu       sync.Mutex
	pod      *corev1.Pod
	hash     map[string]string            // by runtime's container ID
	image    map[string]string            // likewise
	env      map[string]map[string]string // likewise; nil: not told
	owner    map[string]corev1.Pod        // likewise; the world's pod if there is none
	writes   []string
	stopped  []string
	begun    []time.Time // of stops
	hooks    int
	restarts map[string]int
	ready    bool // new instances are ready at once
}

func container(name, priority string) corev1.Container {
	c := corev1.Container{Name: name, Image: "game:v1", Env: []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['mode']"},
	}}}}
	if priority != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: v1beta1.EnvContainerBarrier, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "p_" + priority},
		}})
	}
	return c
}

func inWorld(t *testing.T, containers []corev1.Container, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, source: cachetesting.NewFakeControllerSource(), hash: map[string]string{}, image: map[string]string{},
			env: map[string]map[string]string{}, restarts: map[string]int{}, ready: true,
			pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u", Annotations: map[string]string{"mode": "one"}},
				Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: new(int64(5))},
				Status:     corev1.PodStatus{ContainerStatuses: make([]corev1.ContainerStatus, len(containers))},
			},
		}
		for i := range containers {
			w.start(i)
		}
		w.source.Add(w.pod)
		pods := cache.NewSharedIndexInformer(w.source, &corev1.Pod{}, 0, cache.Indexers{})
		reporter, err := inplacenode.New(inplacenode.Config{
			RuntimeName: "containerd", Runtime: w, Pods: pods, Wants: func(*corev1.Pod) bool { return true }, API: w, Hooks: w, Events: w,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { pods.RunWithContext(ctx) })
		running.Go(func() {
			if err := reporter.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer func() { cancel(); running.Wait(); w.source.Shutdown() }()
		w.pass(5 * time.Second)
		test(w)
	})
}

// start makes a new instance of a container from the pod as it is. mu is held, or nothing runs yet.
func (w *world) start(i int) {
	spec := &w.pod.Spec.Containers[i]
	id := fmt.Sprintf("%s-%d", spec.Name, w.restarts[spec.Name])
	w.hash[id], w.image[id] = kubelet.ContainerHash(spec), spec.Image
	w.env[id] = map[string]string{"PATH": "/bin", "MODE": w.pod.Annotations["mode"]}
	w.pod.Status.ContainerStatuses[i] = corev1.ContainerStatus{
		Name: spec.Name, ContainerID: "containerd://" + id, RestartCount: int32(w.restarts[spec.Name]), Ready: w.ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
	w.restarts[spec.Name]++
}

func (w *world) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func (w *world) change(f func(pod *corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = w.pod.DeepCopy()
	f(w.pod)
	w.source.Modify(w.pod)
}

func update(pod *corev1.Pod) {
	pod.Annotations["mode"] = "two"
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
}

// reported is what the annotation says.
func (w *world) reported() v1beta1.RuntimeContainerMetaSet {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var set v1beta1.RuntimeContainerMetaSet
	if err := json.Unmarshal([]byte(w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta]), &set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) ContainerStatus(_ context.Context, id string) (cri.ContainerStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, name := w.pod, id[:max(strings.LastIndexByte(id, '-'), 0)]
	if other, ok := w.owner[id]; ok {
		pod = &other
	}
	return cri.ContainerStatus{Container: cri.Container{
		ID: id, Name: name, Image: w.image[id], PodUID: string(pod.UID), PodNamespace: pod.Namespace, PodName: pod.Name,
	}, Hash: w.hash[id]}, nil
}

func (w *world) Environment(_ context.Context, id string) (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.env[id] == nil {
		return nil, cri.ErrUnsupported
	}
	return w.env[id], nil
}

func (w *world) StopContainer(_ context.Context, id string, grace time.Duration) error {
	w.mu.Lock()
	w.begun = append(w.begun, time.Now())
	w.mu.Unlock()
	time.Sleep(grace)
	w.mu.Lock()
	w.stopped = append(w.stopped, id)
	w.mu.Unlock()
	time.Sleep(time.Second) // kubelet's relist
	w.change(func(pod *corev1.Pod) {
		for i, s := range pod.Status.ContainerStatuses {
			if s.ContainerID == "containerd://"+id {
				w.start(i)
			}
		}
	})
	return nil
}

func (w *world) Annotate(_ context.Context, _ *corev1.Pod, key, value string) error {
	w.change(func(pod *corev1.Pod) { pod.Annotations[key] = value; w.writes = append(w.writes, value) })
	return nil
}

func (w *world) Run(context.Context, hook.Call) error { w.hooks++; return nil }

func (w *world) Event(corev1.ObjectReference, string, string, string) {}
