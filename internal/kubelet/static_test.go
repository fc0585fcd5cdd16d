package kubelet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

func TestRuntimePodUID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        string
		mirror      bool
	}{
		"ordinary pod":               {nil, "u1", false},
		"mirror of a static pod":     {map[string]string{"kubernetes.io/config.mirror": "h1", "kubernetes.io/config.hash": "h1"}, "h1", true},
		"hash without the mirror":    {map[string]string{"kubernetes.io/config.hash": "h1"}, "u1", false},
		"mirror without the hash":    {map[string]string{"kubernetes.io/config.mirror": "h1"}, "u1", true},
		"the two annotations differ": {map[string]string{"kubernetes.io/config.mirror": "", "kubernetes.io/config.hash": "h2"}, "h2", true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1", Annotations: tt.annotations}}
		if uid, mirror := kubelet.RuntimePodUID(pod), kubelet.IsMirrorPod(pod); uid != tt.want || mirror != tt.mirror {
			t.Errorf("%s: %q, mirror %v; want %q, %v", name, uid, mirror, tt.want, tt.mirror)
		}
	}
}
