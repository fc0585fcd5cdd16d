package upgrade_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
)

func requests(request string) func(*v1beta1.SidecarContainer) {
	return func(c *v1beta1.SidecarContainer) { c.Resources = cpu(request) }
}

func (w *world) resources(container, request, limit string) {
	w.t.Helper()
	for _, c := range slices.Concat(w.pod.Spec.InitContainers, w.pod.Spec.Containers) {
		if c.Name == container && (c.Resources.Requests.Cpu().String() != request || c.Resources.Limits.Cpu().String() != limit) {
			w.t.Errorf("container %s requests %s and is limited to %s, want %s and %s", container, c.Resources.Requests.Cpu(), c.Resources.Limits.Cpu(), request, limit)
		}
	}
}

func TestBothContainersOfAHotUpgradeAreResized(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot, requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("200m") })
	w.is("Outdated")
	w.update()
	w.resources("proxy-1", "200m", "0")
	w.resources("proxy-2", "200m", "0")
	w.is("Updated")
}

func TestANativeSidecarIsResized(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("mesh", "mesh:1", native, requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.InitContainers[0].Resources = cpu("200m") })
	w.update()
	w.resources("mesh", "200m", "0")
	w.is("Updated")
}

func TestALimitIsAddedToAContainerWithoutOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")), cold("other", "other:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	w.update()
	w.resources("log", "100m", "1")
	w.resources("other", "100m", "0")
	w.is("Updated")
}

// What the pod has already is not written again, whatever it is written as.
func TestResourcesThatThePodHasAlreadyAreOnlyRecorded(t *testing.T) {
	t.Parallel()
	for _, has := range []string{"1", "1000m"} {
		w := newWorld(t, cold("log", "log:1", requests("100m")))
		w.pod.Spec.Containers[1].Resources = cpu(has) // by kubectl refit set
		w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("1") })
		w.is("Outdated")
		w.update()
		w.is("Updated")
		if !slices.Equal(w.writes, []inplace.StepKind{inplace.StepWrite}) {
			t.Errorf("%s: writes %v", has, w.writes)
		}
	}
}

// They depend on the pod: the resources in the SidecarSet do not apply to it.
func TestResourcesByAPolicyAreNotWrittenToARunningPod(t *testing.T) {
	t.Parallel()
	byPolicy := func(c *v1beta1.SidecarContainer) { c.ResourcesPolicy = &v1beta1.ResourcesPolicy{} }
	w := newWorld(t, cold("log", "log:1", requests("100m"), byPolicy))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	w.update()
	w.resources("log", "100m", "0")
	w.is("Updated")
}

// A container of the application with the name of a sidecar keeps its resources.
func TestResourcesOfTheApplicationAreNeverChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")), cold("other", "other:1"))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.ConflictPolicy = v1beta1.ConflictKeepPod })
	w.own("log")
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Resources, s.Containers[1].Image = cpu("200m"), "other:2"
	})
	w.update()
	w.resources("log", "100m", "0")
}
