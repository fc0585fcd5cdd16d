package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/testkit/fakecri"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a node with a fake runtime, a toy kubelet and a fake API server, and a daemon at work on it.
type node struct {
	t        *testing.T
	runtime  *fakecri.Runtime
	client   *cri.Client
	requests cache.Indexer
	pods     cache.Store
	stop     func()

	mu     sync.Mutex
	worker *worker
	writes []crr.Status
	events []string
	nudges int
	fail   error // of every write
}

func newNode(t *testing.T) *node {
	n := &node{
		t: t, runtime: fakecri.Start(t), pods: cache.NewStore(cache.MetaNamespaceKeyFunc),
		requests: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{indexPod: indexByPod}),
	}
	n.runtime.ActAsKubelet(fakecri.Kubelet{
		Delay:   func(int) time.Duration { return 50 * time.Millisecond },
		OnStart: n.started,
	})
	client, err := cri.New(cri.Config{Endpoint: n.runtime.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	n.client = client
	n.startDaemon()
	t.Cleanup(func() {
		n.stop()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// startDaemon runs a daemon until n.stop, which is as abrupt as kill -9 to all but its goroutines.
func (n *node) startDaemon() {
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	w := newWorker(Config{Node: "node-1", MaxConcurrent: 256, Logger: slog.New(slog.DiscardHandler)}, group, n.requests, n.pods)
	w.runtime, w.runtimeName, w.podAPI, w.requestAPI, w.events = n.client, fakecri.Name, n, n, n
	w.metrics, w.clockOffset = newMetrics("test"), func() time.Duration { return 0 }
	n.mu.Lock()
	n.worker = w
	n.mu.Unlock()
	group.Go(func() error { return w.watchRuntime(ctx) })
	group.Go(func() error { return w.run(ctx) })
	w.wakeAll()
	n.stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			n.t.Error(err)
		}
	}
}

// pod runs a pod with these containers.
func (n *node) pod(name string, containers ...fakecri.Container) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"}}
	pod.Spec.NodeName = "node-1"
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Status.Phase = corev1.PodRunning
	sandbox := n.runtime.RunPod(identity.Pod{Namespace: "shop", Name: name, UID: string(pod.UID)}, "127.0.0.1")
	for _, c := range containers {
		id := n.runtime.RunContainer(sandbox, c)
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: fakecri.Name + "://" + id, Ready: true, RestartCount: int32(c.RestartCount),
		})
	}
	n.put(n.pods, pod)
	return pod
}

// request asks for containers of the pod, as it is after admission.
func (n *node) request(name string, pod *corev1.Pod, change func(*crr.Request), containers ...string) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 1,
		CreationTimestamp: metav1.Now(), Annotations: map[string]string{v1beta1.AnnotationAdmittedAt: time.Now().UTC().Format(time.RFC3339Nano)},
		Labels: map[string]string{v1beta1.LabelPodUID: string(pod.UID), v1beta1.LabelNodeName: "node-1", v1beta1.LabelActive: "true"},
	}}
	request.Spec.PodName = pod.Name
	request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	for _, container := range containers {
		for _, status := range n.podNow(pod.Name).Status.ContainerStatuses {
			if status.Name == container {
				request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{
					Name: container, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: status.ContainerID},
				})
			}
		}
	}
	if change != nil {
		change(request)
	}
	n.put(n.requests, request)
	n.wake(podOf(request))
	return request
}

func (n *node) put(store cache.Store, object any) {
	if err := store.Add(object); err != nil {
		n.t.Error(err)
	}
}

func (n *node) wake(key identity.Pod) {
	n.mu.Lock()
	w := n.worker
	n.mu.Unlock()
	w.queue.Add(key)
}

func (n *node) podNow(name string) *corev1.Pod {
	object, found, err := n.pods.GetByKey("shop/" + name)
	if err != nil || !found {
		n.t.Errorf("pod %s: found %v, %v", name, found, err)
		return &corev1.Pod{}
	}
	return object.(*corev1.Pod)
}

// started is kubelet reporting a new instance.
func (n *node) started(instance fakecri.Instance) {
	for _, object := range n.pods.List() {
		pod := object.(*corev1.Pod)
		if string(pod.UID) != instance.PodUID {
			continue
		}
		pod = pod.DeepCopy()
		for i := range pod.Status.ContainerStatuses {
			if status := &pod.Status.ContainerStatuses[i]; status.Name == instance.Name {
				status.ContainerID, status.RestartCount = fakecri.Name+"://"+instance.ID, int32(instance.RestartCount)
			}
		}
		n.put(n.pods, pod)
		n.mu.Lock()
		w := n.worker
		n.mu.Unlock()
		w.wakePod(pod)
	}
}

// WriteStatus, as the API server does it.
func (n *node) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return nil, n.fail
	}
	object, found, err := n.requests.GetByKey(request.Namespace + "/" + request.Name)
	if err != nil || !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "containerrecreaterequests"}, request.Name)
	}
	stored := object.(*crr.Request).DeepCopy()
	if stored.ResourceVersion != request.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "containerrecreaterequests"}, request.Name, nil)
	}
	version, err := strconv.Atoi(stored.ResourceVersion)
	if err != nil {
		return nil, err
	}
	stored.ResourceVersion, stored.Status = strconv.Itoa(version+1), *status.DeepCopy()
	n.writes = append(n.writes, stored.Status)
	return stored, n.requests.Update(stored)
}

func (n *node) KeepsConditions() bool { return true }

func (n *node) Pod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	object, found, err := n.pods.GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	return object.(*corev1.Pod), nil
}

func (n *node) Annotate(context.Context, *corev1.Pod, string, string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nudges++
	return nil
}

func (n *node) Event(about corev1.ObjectReference, _, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, fmt.Sprintf("%s %s: %s: %s", about.Kind, about.Name, reason, message))
}

func (n *node) told() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.events...)
}

func (n *node) current(name string) *crr.Request {
	object, found, err := n.requests.GetByKey("shop/" + name)
	if err != nil || !found {
		return &crr.Request{}
	}
	return object.(*crr.Request)
}

// ends waits for a request to end and returns its result and reason.
func (n *node) ends(name string) string {
	n.t.Helper()
	n.eventually("request "+name+" ends", func() bool { return crr.Completed(n.current(name)) })
	result, reason := crr.Result(n.current(name).Status)
	return result + " " + reason
}

func (n *node) eventually(what string, done func() bool) {
	n.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			n.t.Fatalf("not within 20 s: %s; events %q", what, n.told())
		}
	}
}

func (n *node) stops() []fakecri.Call { return n.runtime.Calls("StopContainer") }
