package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
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

// setsImage sets the image of the sidecar.
func (s *sidecarSet) setsImage(to string) {
	s.t.Helper()
	s.edits(func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Image = to })
}

// edits changes the spec of the SidecarSet, whose status the manager writes meanwhile.
func (s *sidecarSet) edits(change func(*v1beta1.SidecarSetSpec)) {
	s.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := s.get(s.t.Context())
		change(&set.Spec)
		return s.Update(s.t.Context(), set)
	})
	s.check(err, "update SidecarSet")
}

func (s *sidecarSet) get(ctx context.Context) *v1beta1.SidecarSet {
	s.t.Helper()
	set := &v1beta1.SidecarSet{}
	s.check(s.Get(ctx, client.ObjectKey{Name: s.name}, set), "get SidecarSet")
	return set
}

// reaches waits for a status of the spec as it is now.
func (s *sidecarSet) reaches(what string, done func(*v1beta1.SidecarSetStatus) bool) *v1beta1.SidecarSet {
	s.t.Helper()
	var last *v1beta1.SidecarSet
	s.await("SidecarSet "+what, func(ctx context.Context) (bool, error) {
		last = s.get(ctx)
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
