package inplace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

// made is what a container instance was created from: the truth that kubelet's status and the daemon's report show later.
type made struct {
	id, image   string
	environment uint64
	running     bool
}

// world is an API server and a node with one pod. Time passes as the test lets it.
type world struct {
	pod       *corev1.Pod // as stored
	seen      *corev1.Pod // as kubelet acts on it
	instances map[string]*made
	reports   bool // a daemon reports container state
	pulls     map[string]bool
	now       time.Time
	counter   int
	rules     []string // that were broken
	stopped   map[string]int
	written   time.Time // when labels or annotations that containers may refer to were last changed
}

func newWorld(pod *corev1.Pod, reports bool) *world {
	w := &world{pod: pod.DeepCopy(), instances: map[string]*made{}, reports: reports, pulls: map[string]bool{}, stopped: map[string]int{}, now: time.Unix(1e9, 0)}
	w.pod.ResourceVersion, w.pod.Generation, w.pod.UID = "1", 1, "uid"
	w.seen = w.pod.DeepCopy()
	for _, container := range w.running() {
		w.start(&container)
	}
	w.report()
	w.publish()
	return w
}

// running are the containers that are kept running.
func (w *world) running() []corev1.Container {
	all := slices.Clone(w.seen.Spec.Containers)
	for _, container := range w.seen.Spec.InitContainers {
		if container.RestartPolicy != nil {
			all = append(all, container)
		}
	}
	return all
}

func (w *world) start(container *corev1.Container) {
	w.counter++
	w.instances[container.Name] = &made{
		id: fmt.Sprintf("containerd://%d", w.counter), image: container.Image, running: true,
		environment: reported.ExpectedEnvHash(container, w.seen),
	}
}

func (w *world) stored() {
	w.pod.ResourceVersion = strconv.Itoa(must(strconv.Atoi(w.pod.ResourceVersion)) + 1)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// see makes kubelet observe the pod. It may act on it only later.
func (w *world) see() { w.seen = w.pod.DeepCopy() }

// act performs one action of kubelet for the pod it has observed.
func (w *world) act() {
	for _, container := range w.running() {
		instance := w.instances[container.Name]
		if instance.running && instance.image != container.Image {
			w.stop(container.Name)
			return // it may take long, and fail to pull
		}
		if !instance.running && w.pulls[container.Image] {
			w.start(&container)
			return
		}
	}
}

// stop ends an instance on purpose: the pod has to be out of its Services.
func (w *world) stop(name string) {
	if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); gate.Of(w.pod) != "" && (c == nil || c.Status != corev1.ConditionFalse) {
		w.rules = append(w.rules, "container "+name+" stopped while the pod was in its Services")
	}
	w.instances[name].running = false
	w.stopped[name]++
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// report writes kubelet's status; that it has seen the spec may be told before the rest, see KEP-5067.
func (w *world) report() {
	status := &w.pod.Status
	status.Phase, status.ObservedGeneration = corev1.PodRunning, w.seen.Generation
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	for _, container := range w.running() {
		instance := w.instances[container.Name]
		s := corev1.ContainerStatus{Name: container.Name, ContainerID: instance.id, Image: instance.image, ImageID: "sha256:" + instance.image}
		s.Ready = instance.running
		s.AllocatedResources = container.Resources.Requests
		switch {
		case instance.running:
			s.State.Running = &corev1.ContainerStateRunning{}
		case !w.pulls[container.Image]:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		default:
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}
		if container.RestartPolicy != nil {
			status.InitContainerStatuses = append(status.InitContainerStatuses, s)
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, s)
		}
	}
	w.stored()
}

// publish writes the daemon's report.
func (w *world) publish() {
	if !w.reports {
		return
	}
	var set v1beta1.RuntimeContainerMetaSet
	for _, name := range slices.Sorted(maps.Keys(w.instances)) {
		instance := w.instances[name]
		set.Containers = append(set.Containers, v1beta1.RuntimeContainerMeta{Name: name, ContainerID: instance.id, Hashes: v1beta1.RuntimeContainerHashes{
			PlainHash:                    must(strconv.ParseUint(kubelet.ContainerHash(&corev1.Container{Name: name, Image: instance.image}), 16, 64)),
			ExtractedEnvFromMetadataHash: instance.environment,
		}})
	}
	if w.pod.Annotations == nil {
		w.pod.Annotations = map[string]string{}
	}
	w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = string(must(json.Marshal(set)))
	w.stored()
}

// enforce is the daemon's restart of a container whose environment is out of date.
func (w *world) enforce() {
	c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady)
	if !w.reports || c == nil || c.Status != corev1.ConditionFalse {
		return
	}
	for _, container := range w.pod.Spec.Containers {
		if i := w.instances[container.Name]; i.running && i.environment != reported.ExpectedEnvHash(&container, w.pod) {
			w.stop(container.Name)
			return
		}
	}
}

// crash ends an instance, which kubelet starts again with the spec it has seen.
func (w *world) crash(random *rand.Rand) {
	names := slices.Sorted(maps.Keys(w.instances))
	w.instances[names[random.IntN(len(names))]].running = false
}

func (w *world) Pod(context.Context, string, string) (*corev1.Pod, error) {
	return w.pod.DeepCopy(), nil
}

func (w *world) PatchPod(_ context.Context, _ *corev1.Pod, _ string, patch []byte) (*corev1.Pod, error) {
	var precondition metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &precondition); err != nil {
		return nil, err
	}
	if precondition.UID != w.pod.UID || precondition.ResourceVersion != w.pod.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, w.pod.Name, errors.New("changed"))
	}
	changed, err := strategicpatch.StrategicMergePatch(must(json.Marshal(w.pod)), patch, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	stored := &corev1.Pod{}
	if err := json.Unmarshal(changed, stored); err != nil {
		return nil, err
	}
	if string(must(json.Marshal(stored.Spec))) != string(must(json.Marshal(w.pod.Spec))) {
		stored.Generation++
	}
	if !maps.Equal(stored.Labels, w.pod.Labels) || stored.Annotations["config"] != w.pod.Annotations["config"] {
		w.written = w.now
	}
	w.pod = stored
	w.stored()
	return w.pod.DeepCopy(), nil
}

func (w *world) Restart(_ context.Context, _ *corev1.Pod, instance inplace.Instance) error {
	// A sync of kubelet that began before the metadata was written may last for a second and starts containers with the old one.
	if !w.reports && w.now.Sub(w.written) >= time.Second {
		w.see()
	}
	if i := w.instances[instance.Container]; i.running && i.id == instance.ContainerID {
		w.stop(instance.Container)
	}
	return nil
}

// next is one round of whoever updates, from a pod that may be out of date.
func (w *world) next(pod *corev1.Pod) (inplace.Decision, error) {
	kept, err := record.Read(pod)
	if err != nil {
		return inplace.Decision{}, err
	}
	known, err := reported.Read(pod)
	if err != nil {
		return inplace.Decision{}, err
	}
	decision := next(pod, kept, known, w.now)
	if decision.Kind != inplace.KindStep {
		return decision, nil
	}
	if _, err = inplace.Apply(context.Background(), w, pod, decision.Step); apierrors.IsConflict(err) || errors.Is(err, inplace.ErrChanged) {
		err = nil
	}
	return decision, err
}
