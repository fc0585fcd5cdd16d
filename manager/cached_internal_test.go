package manager

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/managedfields"
)

// allFeatures is a configuration with everything that reads pods from the cache.
var allFeatures = Config{
	RefusePods: true, ContainerRecreateRequests: true, RestartRollouts: true, InPlaceUpdates: true, SidecarSetRollout: true, PodProbes: true,
}

func TestComposedPodsAreAsBefore(t *testing.T) {
	t.Parallel()
	pods := cachedPods(allFeatures)
	sizes := map[string]int{}
	for seed := range int64(20000) {
		pod := randomPod(seed)
		before, err := cache.TrimPod(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		want, got := ordered(before.(*corev1.Pod)), ordered(pods.Of(pod.DeepCopy()))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d (-before +now):\n%s", seed, diff)
		}
		sizes[fmt.Sprintf("containers %t, record %t, list %t, conditions %d", len(got.Spec.Containers) > 0, got.Annotations[v1beta1.AnnotationInPlaceUpdateState] != "",
			got.Annotations[v1beta1.AnnotationSidecarSetList] != "", min(len(got.Status.Conditions), 3))]++
	}
	for what, n := range sizes {
		t.Log(what, n)
	}
}

// ordered sorts what has no order: conditions, and variables of containers.
func ordered(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	slices.SortStableFunc(pod.Status.Conditions, func(a, b corev1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			slices.SortStableFunc(list[i].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
		}
	}
	return pod
}

// randomPod fills all fields of a pod, and then many of those on which the cache depends with values that occur.
func randomPod(seed int64) *corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(seed), 7)) //nolint:gosec // not negative; a test
	pod := &corev1.Pod{}
	randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(int64(c.Intn(4))*50, resource.DecimalSI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Intn(1000))+1795341600, 0) },
		func(entry *metav1.ManagedFieldsEntry, c randfill.Continue) {
			*entry = metav1.ManagedFieldsEntry{Manager: "kubelet", Time: &metav1.Time{}}
			if c.Bool() {
				*entry = metav1.ManagedFieldsEntry{
					Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", Time: &metav1.Time{},
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:owned":{}}}}`),
				}
			}
		},
		func(c *corev1.PodCondition, f randfill.Continue) {
			f.FillNoCustom(c)
			c.Type = one(r, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady, corev1.DisruptionTarget, corev1.PodResizePending,
				corev1.PodResizeInProgress, v1beta1.ConditionSidecarTerminated, v1beta1.ConditionSidecarSetUpgradable, v1beta1.ReadinessGateKruisePodReady, "example.com/a")
		},
		func(e *corev1.EnvVar, _ randfill.Continue) {
			*e = corev1.EnvVar{Name: one(r, "A", v1beta1.EnvSidecarInjected, v1beta1.EnvTerminateSidecar, v1beta1.EnvTerminateSidecarWithImage), Value: one(r, "true", "false", text(r))}
			if r.IntN(4) == 0 {
				e.Name, e.ValueFrom, e.Value = "REF", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: one(r, "metadata.annotations['config']", "metadata.name")}}, ""
			}
		},
		func(s *corev1.ContainerState, f randfill.Continue) {
			switch r.IntN(4) {
			case 0:
				f.Fill(&s.Running)
			case 1:
				f.Fill(&s.Waiting)
			case 2:
				f.Fill(&s.Terminated)
			}
		},
	).Fill(pod)
	unique(pod)
	pod.Annotations = map[string]string{}
	for _, key := range []string{
		"owned", "config", "other", v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace,
		v1beta1.AnnotationRuntimeContainersMeta, v1beta1.AnnotationSidecarSetList, v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetInPlaceUpdateState,
		v1beta1.AnnotationSidecarSetSkipped, v1beta1.PrefixSidecarImage + "log",
	} {
		if r.IntN(3) == 0 {
			pod.Annotations[key] = text(r)
		}
	}
	if r.IntN(3) > 0 {
		pod.Spec.ReadinessGates = nil
	}
	if r.IntN(20) == 0 {
		pod.Labels = map[string]string{"large": strings.Repeat("x", 40<<10)}
	}
	return pod
}

// unique removes conditions and variables that are there twice: the API server does not store them.
func unique(pod *corev1.Pod) {
	seen := map[corev1.PodConditionType]bool{}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		was := seen[c.Type]
		seen[c.Type] = true
		return was
	})
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			seen := map[string]bool{}
			list[i].Env = slices.DeleteFunc(list[i].Env, func(e corev1.EnvVar) bool {
				was := seen[e.Name]
				seen[e.Name] = true
				return was
			})
		}
	}
}

func text(r *rand.Rand) string {
	return strings.Repeat("x", one(r, 0, 1, 200, 256, 257, 512, 513, 5000, 16<<10, 17<<10))
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
