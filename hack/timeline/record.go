package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/internal/kubelet"
)

//go:embed pods.yaml
var manifest []byte

// node is the only node of the cluster that this program brings up.
const node = "node-1"

// recorder runs a disruption and records when the containers of the StatefulSet run.
type recorder struct {
	api         *demokit.Client
	runtime     *cri.Client
	statefulSet *appsv1.StatefulSet
}

// span is one instance of a container. End is zero while it runs.
type span struct {
	pod, ip, container string
	start, end         time.Time
}

// recording is what happened from begin until the StatefulSet was available again.
type recording struct {
	begin, ready time.Time
	spans        []span
}

func newRecorder(kit *demokit.Demo) (*recorder, error) {
	api, err := kit.Connect(v1beta1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	statefulSet := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(manifest, statefulSet); err != nil {
		return nil, fmt.Errorf("read pods.yaml: %w", err)
	}
	socket := filepath.Join(kit.Root, ".cluster", "nodes", node, "containerd.sock")
	runtime, err := cri.New(cri.Config{Endpoint: "unix://" + socket})
	if err != nil {
		return nil, err
	}
	return &recorder{api: api, runtime: runtime, statefulSet: statefulSet}, nil
}

// setUp creates the StatefulSet again and waits until its pod is ready.
func (r *recorder) setUp(ctx context.Context) error {
	if err := r.api.CreateNamespace(ctx, r.statefulSet.Namespace); err != nil {
		return err
	}
	if err := r.api.Delete(ctx, r.statefulSet.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete StatefulSet: %w", err)
	}
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		err := r.api.Create(ctx, r.statefulSet.DeepCopy())
		return err == nil, ignoreAlreadyExists(err)
	})
	if err != nil {
		return fmt.Errorf("create StatefulSet: %w", err)
	}
	_, err = r.readyPod(ctx, nil)
	return err
}

// record follows the StatefulSet through a disruption, which returns the instances that have to be replaced.
func (r *recorder) record(ctx context.Context, disrupt func(context.Context, *corev1.Pod) error) (recording, error) {
	before, err := r.readyPod(ctx, nil)
	if err != nil {
		return recording{}, err
	}
	events := newEventLog()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { _ = r.runtime.Events(watching, events.add) })
	select {
	case <-events.subscribed:
	case <-ctx.Done():
		return recording{}, ctx.Err()
	}
	begin := time.Now()
	if err := disrupt(ctx, before); err != nil {
		return recording{}, err
	}
	after, err := r.readyPod(ctx, before)
	if err != nil {
		return recording{}, err
	}
	ready := time.Now()
	if err := demokit.Until(ctx, func(ctx context.Context) (bool, error) { return r.gone(ctx, before, after) }); err != nil {
		return recording{}, fmt.Errorf("wait for the deleted pod to be gone: %w", err)
	}
	return recording{begin: begin, ready: ready, spans: events.spans(begin, before, after)}, nil
}

func (r *recorder) restart(ctx context.Context, pod *corev1.Pod) error {
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "timeline-", Namespace: pod.Namespace},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name, Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}},
		},
	}
	return r.api.Create(ctx, request)
}

func (r *recorder) deletePod(ctx context.Context, pod *corev1.Pod) error {
	return r.api.Delete(ctx, pod)
}

// readyPod waits for a ready pod of the StatefulSet whose container app is another instance than before.
func (r *recorder) readyPod(ctx context.Context, before *corev1.Pod) (found *corev1.Pod, err error) {
	err = demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := r.api.List(ctx, &pods, client.InNamespace(r.statefulSet.Namespace)); err != nil {
			return false, err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp == nil && kubelet.Ready(pod) && (before == nil || instance(pod, "app") != instance(before, "app")) {
				found = pod
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for a ready pod: %w", err)
	}
	return found, nil
}

func (r *recorder) gone(ctx context.Context, before, after *corev1.Pod) (bool, error) {
	if before.UID == after.UID {
		return true, nil
	}
	var pod corev1.Pod
	err := r.api.Get(ctx, client.ObjectKeyFromObject(before), &pod)
	return apierrors.IsNotFound(err) || pod.UID != before.UID, client.IgnoreNotFound(err)
}

// eventLog collects the container events of the runtime.
type eventLog struct {
	subscribed chan struct{}
	once       sync.Once
	mu         sync.Mutex
	events     []cri.Event
}

func newEventLog() *eventLog { return &eventLog{subscribed: make(chan struct{})} }

func (l *eventLog) add(event cri.Event) {
	if event.Relist {
		l.once.Do(func() { close(l.subscribed) })
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// spans are the instances of the two pods that ran at begin or later.
func (l *eventLog) spans(begin time.Time, pods ...*corev1.Pod) []span {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]*span{}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			found[status.ContainerID] = &span{pod: pod.Name, ip: pod.Status.PodIP, container: status.Name, start: begin}
		}
	}
	for _, event := range l.events {
		s := found["containerd://"+event.ContainerID]
		switch {
		case s == nil:
		case event.Type == cri.EventStarted:
			s.start = event.At
		case event.Type == cri.EventStopped:
			s.end = event.At
		}
	}
	spans := make([]span, 0, len(found))
	for _, s := range found {
		spans = append(spans, *s)
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.container, b.container), a.start.Compare(b.start))
	})
	return spans
}

// down is how long no instance of container app ran.
func (r recording) down() time.Duration {
	var stopped, started time.Time
	for _, s := range r.spans {
		if s.container != "app" {
			continue
		}
		if s.start.Equal(r.begin) {
			stopped = s.end
		} else {
			started = s.start
		}
	}
	return max(started.Sub(stopped), 0).Round(10 * time.Millisecond)
}

func instance(pod *corev1.Pod, container string) string {
	if status := kubelet.StatusOf(pod, container); status != nil {
		return status.ContainerID
	}
	return ""
}

func ignoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
