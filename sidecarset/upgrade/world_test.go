package upgrade_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// world is a pod with the sidecars of one SidecarSet, and the node that it is on.
type world struct {
	t         *testing.T
	set       *v1beta1.SidecarSet
	revisions []*appsv1.ControllerRevision
	target    *upgrade.Target
	pod       *corev1.Pod
	faulty    map[string]bool // images that do not run
	now       time.Time
	writes    []inplace.StepKind
	restarts  map[string]int
}

func newWorld(t *testing.T, containers ...v1beta1.SidecarContainer) *world {
	t.Helper()
	w := &world{t: t, faulty: map[string]bool{}, restarts: map[string]int{}, now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	w.set = &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set", ResourceVersion: "500"}}
	for _, c := range containers {
		if revision.Native(&c) {
			w.set.Spec.InitContainers = append(w.set.Spec.InitContainers, c)
		} else {
			w.set.Spec.Containers = append(w.set.Spec.Containers, c)
		}
	}
	w.spec(func(*v1beta1.SidecarSetSpec) {})
	w.inject()
	return w
}

func cold(name, image string, change ...func(*v1beta1.SidecarContainer)) v1beta1.SidecarContainer {
	c := v1beta1.SidecarContainer{Container: corev1.Container{Name: name, Image: image}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func native(c *v1beta1.SidecarContainer) { c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }

func hot(c *v1beta1.SidecarContainer) {
	c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "empty:1"}
}

func cpu(request string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}}
}

// spec changes the SidecarSet, as its user does, and records its revision, as the controller does.
func (w *world) spec(change func(*v1beta1.SidecarSetSpec)) {
	w.t.Helper()
	w.set = w.set.DeepCopy()
	change(&w.set.Spec)
	latest, changes, err := revision.Plan(w.set, "refit-system", w.revisions)
	if err != nil {
		w.t.Fatal(err)
	}
	if changes.Create != nil {
		w.revisions = append(w.revisions, changes.Create)
	}
	number, err := strconv.ParseUint(w.set.ResourceVersion, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	w.target = upgrade.NewTarget(w.set, latest.Name, number, upgrade.NewHistory(w.revisions))
}

// image changes the image of the only container.
func (w *world) image(image string) {
	w.t.Helper()
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		for i := range s.Containers {
			s.Containers[i].Image = image
		}
		for i := range s.InitContainers {
			s.InitContainers[i].Image = image
		}
	})
}

// forge makes the pod say that it has the newest sidecars.
func (w *world) forge() {
	for key, value := range annotation.Write(w.pod, &w.target.Version, metav1.NewTime(w.now)) {
		w.pod.Annotations[key] = value
	}
}

// inject makes the pod, as the webhook does.
func (w *world) inject() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod", ResourceVersion: "1", Generation: 1, Annotations: map[string]string{}}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1", Resources: cpu("1")}}
	for _, list := range []struct {
		from []v1beta1.SidecarContainer
		into *[]corev1.Container
	}{{w.set.Spec.InitContainers, &pod.Spec.InitContainers}, {w.set.Spec.Containers, &pod.Spec.Containers}} {
		for _, c := range list.from {
			container := *c.Container.DeepCopy()
			container.Env = append(container.Env, corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})
			if c.UpgradeStrategy.UpgradeType != v1beta1.HotUpgrade {
				*list.into = append(*list.into, container)
				continue
			}
			first, second := container, container
			first.Name, second.Name, second.Image = c.Name+"-1", c.Name+"-2", c.UpgradeStrategy.HotUpgradeEmptyImage
			*list.into = append(*list.into, first, second)
			pod.Annotations[v1beta1.PrefixSidecarSetVersion+first.Name], pod.Annotations[v1beta1.PrefixSidecarSetVersionAlt+first.Name] = "1", "0"
			pod.Annotations[v1beta1.PrefixSidecarSetVersion+second.Name], pod.Annotations[v1beta1.PrefixSidecarSetVersionAlt+second.Name] = "0", "1"
			pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] = annotation.WriteWorking(pod, map[string]string{c.Name: first.Name})
		}
	}
	for key, value := range annotation.Write(pod, &w.target.Version, metav1.NewTime(w.now)) {
		pod.Annotations[key] = value
	}
	w.pod = pod
	w.kubelet()
}

// kubelet runs what is in the spec, and reports it.
func (w *world) kubelet() {
	w.pod.Status.ObservedGeneration = w.pod.Generation
	report := func(containers []corev1.Container, statuses *[]corev1.ContainerStatus) {
		was := *statuses
		*statuses = nil
		for i, c := range containers {
			status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, ContainerID: "containerd://" + c.Name + "-0"}
			if len(was) > i {
				status.ContainerID = was[i].ContainerID
				if was[i].Image != c.Image {
					w.restarts[c.Name]++
					status.ContainerID = fmt.Sprintf("containerd://%s-%d", c.Name, w.restarts[c.Name])
				}
			}
			if w.faulty[c.Image] {
				status.ImageID, status.State.Waiting = "", &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}
			} else {
				status.Ready, status.State.Running = true, &corev1.ContainerStateRunning{}
			}
			status.AllocatedResources = c.Resources.Requests
			*statuses = append(*statuses, status)
		}
	}
	report(w.pod.Spec.InitContainers, &w.pod.Status.InitContainerStatuses)
	report(w.pod.Spec.Containers, &w.pod.Status.ContainerStatuses)
}

func (w *world) judge() upgrade.Verdict {
	return w.target.Judge(w.pod, w.target.Obstacles(w.pod), w.now)
}

// write carries a step out, as the API server does.
func (w *world) write(step *inplace.Step, err error) bool {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	if step == nil {
		return false
	}
	w.writes = append(w.writes, step.Kind)
	before, err := json.Marshal(w.pod)
	if err != nil {
		w.t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, step.Patch(), corev1.Pod{})
	if err != nil {
		w.t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(after, pod); err != nil {
		w.t.Fatal(err)
	}
	if step.Subresource == "resize" {
		pod.Annotations = w.pod.Annotations
	}
	pod.Generation++
	pod.ResourceVersion = fmt.Sprint(len(w.writes) + 1)
	w.pod = pod
	return true
}

// update begins the update and lets everything happen until nothing is to be written any more.
func (w *world) update() {
	w.t.Helper()
	if !w.write(w.target.Step(w.pod, true, w.now)) {
		w.t.Fatalf("nothing is begun: %s", w.verdict())
	}
	for range 10 {
		w.now = w.now.Add(time.Second)
		w.kubelet()
		if !w.write(w.target.Step(w.pod, false, w.now)) {
			return
		}
	}
	w.t.Fatal("the update does not end")
}

func (w *world) verdict() string { v := w.judge(); return v.String() }

// is compares the verdict, in words.
func (w *world) is(want string) {
	w.t.Helper()
	if got := w.verdict(); got != want {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
}
