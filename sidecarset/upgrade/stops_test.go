package upgrade_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
)

// PodDisruptionBudgets are asked before a container is stopped, and for nothing else.
func TestAnUpdateSaysWhetherItStopsAContainer(t *testing.T) {
	t.Parallel()
	restarted := func(c *v1beta1.SidecarContainer) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	}
	small := requests("100m")
	larger := func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	}
	image := func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "log:2" }
	for name, tt := range map[string]struct {
		sidecar v1beta1.SidecarContainer
		change  func(*v1beta1.SidecarSetSpec)
		state   string
		stops   bool
	}{
		"nothing":                             {cold("log", "log:1"), func(*v1beta1.SidecarSetSpec) {}, "Updated", false},
		"an image":                            {cold("log", "log:1"), image, "Outdated", true},
		"the image of the idle container":     {cold("log", "log:1", hot), image, "Outdated", true},
		"resources":                           {cold("log", "log:1", small), larger, "Outdated", false},
		"resources that need a restart":       {cold("log", "log:1", small, restarted), larger, "Outdated", true},
		"resources and an image":              {cold("log", "log:1", small), func(s *v1beta1.SidecarSetSpec) { larger(s); image(s) }, "Outdated", true},
		"what needs another pod, an eviction": {cold("log", "log:1"), func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Command = []string{"/log"} }, "NotUpgradable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.sidecar)
			w.spec(tt.change)
			if v := w.judge(); string(v.State) != tt.state || v.Stops != tt.stops {
				t.Errorf("%s, stops %t; want %s, %t", v.State, v.Stops, tt.state, tt.stops)
			}
		})
	}
}
