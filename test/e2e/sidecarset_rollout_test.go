package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

// sidecarSet is a SidecarSet of one container, of pods that OpenKruise has injected before.
type sidecarSet struct {
	*fixture
	name string
}

// newSidecarSet creates n pods with the annotations of OpenKruise, and then the SidecarSet that they are of.
func newSidecarSet(t *testing.T, n int, change ...func(*v1beta1.SidecarSetSpec)) *sidecarSet {
	t.Helper()
	s := &sidecarSet{fixture: newFixture(t)}
	s.name = s.namespace
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"sidecars": s.name}}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{
		Name: "log", Image: image, Command: []string{"sh", "-c", obedient}, ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}, PodInjectPolicy: v1beta1.BeforeAppContainer, UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.ColdUpgrade},
		ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumeDisabled}}}
	for _, c := range change {
		c(&set.Spec)
	}
	for i := range n {
		s.check(s.Create(t.Context(), s.injected(fmt.Sprintf("web-%d", i), &set.Spec)), "create pod")
	}
	for i := range n {
		s.awaitPod(fmt.Sprintf("web-%d", i), "to be ready", podReady)
	}
	s.check(s.Create(t.Context(), set), "create SidecarSet")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTimeout)
		defer cancel()
		if t.Failed() {
			out, _ := s.kubectl(ctx, "", "get", "sidecarset", s.name, "--output=yaml")
			t.Log(out)
		}
		if err := s.Delete(ctx, set); err != nil {
			t.Logf("clean: %v", err)
		}
	})
	return s
}

// injected is a pod as OpenKruise's webhook leaves it.
func (s *sidecarSet) injected(name string, spec *v1beta1.SidecarSetSpec) *corev1.Pod {
	s.t.Helper()
	hashes := revision.HashesOf(spec)
	entry := func(hash string) string {
		text, err := json.Marshal(map[string]any{s.name: map[string]any{
			"updateTimestamp": "2026-01-02T03:04:05Z", "hash": hash, "sidecarSetName": s.name, "sidecarList": []string{spec.Containers[0].Name},
		}})
		s.check(err, "encode annotation")
		return string(text)
	}
	sidecar := *spec.Containers[0].Container.DeepCopy()
	sidecar.Env = append(sidecar.Env, corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})
	pod := s.podOf(name, sidecar, corev1.Container{Name: "app", Image: image, Command: []string{"sh", "-c", obedient}})
	pod.Labels = map[string]string{"sidecars": s.name}
	pod.Annotations = map[string]string{
		v1beta1.AnnotationSidecarSetHash: entry(hashes.Full), v1beta1.AnnotationSidecarSetHashWithoutImage: entry(hashes.WithoutImage),
		v1beta1.AnnotationSidecarSetList: s.name,
	}
	if spec.Containers[0].UpgradeStrategy.UpgradeType == v1beta1.HotUpgrade {
		s.twins(pod, spec)
	}
	return pod
}

// twins replaces the sidecar by two containers, one of them with the empty image.
func (s *sidecarSet) twins(pod *corev1.Pod, spec *v1beta1.SidecarSetSpec) {
	works, idle := pod.Spec.Containers[0], *pod.Spec.Containers[0].DeepCopy()
	works.Name, idle.Name, idle.Image = "log-1", "log-2", spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage
	for _, c := range []*corev1.Container{&works, &idle} {
		for name, prefix := range map[string]string{v1beta1.EnvSidecarSetVersion: v1beta1.PrefixSidecarSetVersion, v1beta1.EnvSidecarSetVersionAlt: v1beta1.PrefixSidecarSetVersionAlt} {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + prefix + c.Name + "']"}}})
		}
	}
	pod.Spec.Containers = []corev1.Container{works, idle, pod.Spec.Containers[1]}
	maps.Copy(pod.Annotations, map[string]string{
		v1beta1.PrefixSidecarSetVersion + "log-1": "1", v1beta1.PrefixSidecarSetVersionAlt + "log-1": "0",
		v1beta1.PrefixSidecarSetVersion + "log-2": "0", v1beta1.PrefixSidecarSetVersionAlt + "log-2": "1",
		v1beta1.AnnotationHotUpgradeWorking: `{"log":"log-1"}`,
	})
}

// changes the spec.
func (s *sidecarSet) changes(patch string) {
	s.t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	s.check(s.Patch(s.t.Context(), set, client.RawPatch(types.MergePatchType, []byte(patch))), "patch SidecarSet")
}

// sets the image of the sidecar.
func (s *sidecarSet) setsImage(to string) {
	s.t.Helper()
	set := s.get()
	set.Spec.Containers[0].Image = to
	s.check(s.Update(s.t.Context(), set), "update SidecarSet")
}

func (s *sidecarSet) get() *v1beta1.SidecarSet {
	s.t.Helper()
	set := &v1beta1.SidecarSet{}
	s.check(s.Get(s.t.Context(), client.ObjectKey{Name: s.name}, set), "get SidecarSet")
	return set
}

// reaches waits for a status of the spec as it is now.
func (s *sidecarSet) reaches(what string, done func(*v1beta1.SidecarSetStatus) bool) *v1beta1.SidecarSet {
	s.t.Helper()
	var last *v1beta1.SidecarSet
	s.await("SidecarSet "+what, func(context.Context) (bool, error) {
		last = s.get()
		return last.Status.ObservedGeneration == last.Generation && done(&last.Status), nil
	})
	return last
}

func reason(status *v1beta1.SidecarSetStatus, kind string) string {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

func completed(n int32) func(*v1beta1.SidecarSetStatus) bool {
	return func(status *v1beta1.SidecarSetStatus) bool {
		return status.UpdatedReadyPods == n && reason(status, v1beta1.ConditionProgressing) == "Completed"
	}
}

func (s *sidecarSet) all(n int) []*corev1.Pod {
	s.t.Helper()
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = s.pod(fmt.Sprintf("web-%d", i))
	}
	return pods
}

// images counts the pods by the image of their sidecar.
func (s *sidecarSet) images(n int) map[string]int {
	s.t.Helper()
	count := map[string]int{}
	for _, pod := range s.all(n) {
		for _, c := range pod.Spec.Containers {
			if c.Name == "log" {
				count[c.Image]++
			}
		}
	}
	return count
}

func TestSidecarSetTakesOverPodsOfOpenKruiseAndUpdatesThemInPlace(t *testing.T) {
	t.Parallel()
	const n = 4
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	before := s.all(n)
	for _, pod := range before {
		if status(pod, "log").RestartCount != 0 {
			t.Errorf("the sidecar of %s was restarted", pod.Name)
		}
	}
	s.changes(`{"spec":{"updateStrategy":{"partition":2,"maxUnavailable":2}}}`)
	s.setsImage(newImage)
	s.reaches("to stop at the partition", func(status *v1beta1.SidecarSetStatus) bool {
		return status.UpdatedReadyPods == 2 && reason(status, v1beta1.ConditionProgressing) == "Partition"
	})
	if got := s.images(n); got[newImage] != 2 {
		t.Errorf("images %v", got)
	}
	s.changes(`{"spec":{"updateStrategy":{"partition":0,"paused":true}}}`)
	s.reaches("to pause", func(status *v1beta1.SidecarSetStatus) bool {
		return reason(status, v1beta1.ConditionProgressing) == "Paused"
	})
	if got := s.images(n); got[newImage] != 2 {
		t.Errorf("images %v while paused", got)
	}
	s.changes(`{"spec":{"updateStrategy":{"paused":false}}}`)
	s.reaches("to be completed", completed(n))
	for i, pod := range s.all(n) {
		s.same(before[i])
		if status(pod, "app").ContainerID != status(before[i], "app").ContainerID {
			t.Errorf("the application of %s was restarted", pod.Name)
		}
		if c := status(pod, "log"); c.RestartCount != 1 {
			t.Errorf("the sidecar of %s was restarted %d times", pod.Name, c.RestartCount)
		}
	}
	if out := s.run("get", "controllerrevisions", "--namespace", systemNamespace, "--selector", v1beta1.LabelSidecarSetName+"="+s.name, "--output=name"); len(strings.Fields(out)) != 2 {
		t.Errorf("revisions %s", out)
	}
	s.setsImage(image)
	s.reaches("to be rolled back", completed(n))
	if got := s.images(n); got[image] != n {
		t.Errorf("images %v after the rollback", got)
	}
}

func TestFaultySidecarImageStopsOnePodAndIsHealed(t *testing.T) {
	t.Parallel()
	const n = 3
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	s.setsImage(missingImage)
	s.reaches("to report the failure", func(status *v1beta1.SidecarSetStatus) bool {
		return status.FailedPods == 1 && reason(status, v1beta1.ConditionDegraded) == "UpdateFailed"
	})
	if got := s.images(n); got[missingImage] != 1 {
		t.Errorf("images %v, with maxUnavailable 1", got)
	}
	s.setsImage(newImage)
	s.reaches("to heal", completed(n))
	if got := s.images(n); got[newImage] != n {
		t.Errorf("images %v", got)
	}
}

func TestSidecarsThatCannotBeUpdatedInPlaceSaySo(t *testing.T) {
	t.Parallel()
	s := newSidecarSet(t, 1)
	s.reaches("to count the pod as updated", completed(1))
	set := s.get()
	set.Spec.Containers[0].Image, set.Spec.Containers[0].Env = newImage, []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	s.check(s.Update(t.Context(), set), "update SidecarSet")
	set = s.reaches("to say so", func(status *v1beta1.SidecarSetStatus) bool {
		return status.NotUpgradablePods == 1 && reason(status, v1beta1.ConditionDegraded) == "NotUpgradable"
	})
	if c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDegraded); !strings.Contains(c.Message, "env") {
		t.Errorf("message %q", c.Message)
	}
	s.awaitPod("web-0", "to have the condition", func(pod *corev1.Pod) bool {
		return condition(pod, v1beta1.ConditionSidecarSetUpgradable) == corev1.ConditionFalse
	})
	if got := s.images(1); got[image] != 1 {
		t.Errorf("images %v", got)
	}
}

func TestSidecarIsResizedInPlace(t *testing.T) {
	t.Parallel()
	cpu := func(to string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(to)}}
	}
	s := newSidecarSet(t, 1, func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Resources = cpu("10m") })
	s.reaches("to count the pod as updated", completed(1))
	set := s.get()
	set.Spec.Containers[0].Resources = cpu("20m")
	s.check(s.Update(t.Context(), set), "update SidecarSet")
	s.reaches("to be completed", completed(1))
	pod := s.pod("web-0")
	allocated := status(pod, "log").AllocatedResources
	if got := allocated.Cpu().String(); got != "20m" || status(pod, "log").RestartCount != 0 {
		t.Errorf("CPU %s, restarts %d", got, status(pod, "log").RestartCount)
	}
}

func TestSidecarIsUpgradedHotAndRolledBack(t *testing.T) {
	t.Parallel()
	s := newSidecarSet(t, 1, func(spec *v1beta1.SidecarSetSpec) {
		spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(1))
		// The empty image is the same program under another name of the registry.
		spec.Containers[0].UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "busybox:1.36"}
	})
	images := func(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image + " " + pod.Spec.Containers[1].Image }
	s.reaches("to count the pod as updated", completed(1))
	s.setsImage(newImage)
	s.reaches("to be completed", completed(1))
	pod := s.pod("web-0")
	if images(pod) != "busybox:1.36 "+newImage || pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] != `{"log":"log-2"}` {
		t.Errorf("images %s, working %s", images(pod), pod.Annotations[v1beta1.AnnotationHotUpgradeWorking])
	}
	// Defect 1 of the peer: a broken upgrade can only be healed by a third image.
	s.setsImage(missingImage)
	s.reaches("to report the failure", func(status *v1beta1.SidecarSetStatus) bool { return status.FailedPods == 1 })
	s.setsImage(newImage)
	s.reaches("to be rolled back", completed(1))
	after := s.pod("web-0")
	if images(after) != "busybox:1.36 "+newImage || status(after, "log-2").ContainerID != status(pod, "log-2").ContainerID {
		t.Errorf("images %s; the container that worked was replaced: %v", images(after), status(after, "log-2").ContainerID != status(pod, "log-2").ContainerID)
	}
	s.same(pod)
}
