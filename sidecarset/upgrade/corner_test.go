package upgrade_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestAPodWhoseCommandIsThatOfTheSpecIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.Command, c.Args = []string{"run"}, []string{"-v"} }))
	w.is("Updated")
	w.image("log:2")
	w.is("Outdated")
}

// An autoscaler, or kubectl refit set, has resized the container. The new spec asks for another image and the same resources as the old one.
func TestResourcesThatOthersHaveChangedStayWhereTheSpecHasNotChangedThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.pod.Spec.Containers[1].Resources = cpu("5")
	w.image("log:2")
	w.update()
	container := w.pod.Spec.Containers[1]
	if container.Image != "log:2" || container.Resources.Requests.Cpu().String() != "5" {
		t.Errorf("%+v", container)
	}
}

func TestALimitAloneIsResized(t *testing.T) {
	t.Parallel()
	limited := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}
	}
	w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.Resources = limited("1") }))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = limited("2") })
	w.is("Outdated")
	w.update()
	if got := w.pod.Spec.Containers[1].Resources.Limits.Cpu().String(); got != "2" {
		t.Errorf("the limit is %s", got)
	}
}

// Kubelets before Kubernetes 1.33 do not report the generation that they have seen.
func TestAPodOfAKubeletThatReportsNoGenerationIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	w.update()
	w.pod.Status.ObservedGeneration = 0
	w.is("Updated")
}

// Kubelet has not reported the pod yet.
func TestAPodWithoutStatusesIsJudged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]v1beta1.SidecarContainer{"cold": cold("log", "log:1"), "hot": cold("log", "log:1", hot)} {
		w := newWorld(t, c)
		w.pod.Status = corev1.PodStatus{}
		w.image("log:2")
		if v := w.judge(); v.State != "Outdated" {
			t.Errorf("%s: %s", name, w.verdict())
		}
	}
}

func TestAnUpdateIsBegunOnlyWhenThatIsAskedForAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	if w.write(w.target.Step(w.pod, false, w.now)) {
		t.Fatal("begun without being asked to")
	}
	if !w.write(w.target.Step(w.pod, true, w.now)) {
		t.Fatal("not begun")
	}
	for w.pod.Spec.Containers[1].Image != "log:2" {
		w.now = w.now.Add(time.Second)
		w.kubelet()
		if !w.write(w.target.Step(w.pod, false, w.now)) {
			t.Fatalf("it does not go on: %s", w.verdict())
		}
	}
}
