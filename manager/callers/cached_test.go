package callers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/manager/callers"
)

// By them the webhooks know which callers are pods.
func TestAddressesOfPodsAreCached(t *testing.T) {
	t.Parallel()
	for name, large := range map[string]string{"pod": "", "pod that is too large": strings.Repeat("x", 64<<10)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": large}}, Spec: corev1.PodSpec{HostNetwork: true}}
			pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}
			got := trim.NewPods(callers.PodPart()).Of(pod)
			if !got.Spec.HostNetwork || got.Status.PodIP != "10.0.0.1" || !cmp.Equal(got.Status.PodIPs, pod.Status.PodIPs) {
				t.Errorf("host network %t, addresses %s, %v", got.Spec.HostNetwork, got.Status.PodIP, got.Status.PodIPs)
			}
		})
	}
}
