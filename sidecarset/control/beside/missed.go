package beside

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/missed"
)

// Selects reports whether a SidecarSet with this selector selects the pod.
func Selects(ctx context.Context, cached client.Reader, selector match.Selector, pod *corev1.Pod) (bool, error) {
	if !selector.Pod(pod.Labels) {
		return false, nil
	}
	var labels map[string]string
	if selector.NeedsNamespace() {
		var err error
		if labels, err = NamespaceLabels(ctx, cached, pod.Namespace); err != nil {
			return false, err
		}
	}
	return selector.Namespace(pod.Namespace, labels), nil
}

// Missed returns why a pod that the SidecarSet selects was not injected, or nil if it was. requests are the requests
// that name the pod. The webhook is not called for pods of kube-system and of the excluded namespaces.
func Missed(ctx context.Context, cached client.Reader, set *v1beta1.SidecarSet, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, excluded []string, now time.Time) (*missed.Pod, error) {
	if slices.Contains(annotation.Names(pod), set.Name) {
		return nil, nil
	}
	labels, err := NamespaceLabels(ctx, cached, pod.Namespace)
	if err != nil {
		return nil, err
	}
	disabled := pod.Namespace == metav1.NamespaceSystem || slices.Contains(excluded, pod.Namespace) || labels[v1beta1.LabelSidecarInjection] == "disabled"
	seen, _ := budget.Observe(pod, requests, 0, now)
	why := missed.Judge(pod, set, &seen, disabled)
	return &why, nil
}
