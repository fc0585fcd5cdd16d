package rollout

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mark writes the condition SidecarSetUpgradable to the pods for which it has changed.
func (r *reconciler) mark(ctx context.Context, s *set) {
	s.mu.Lock()
	conditions := maps.Clone(s.conditions)
	uids := map[types.NamespacedName]types.UID{}
	for key := range conditions {
		uids[key] = s.known[key].uid
	}
	s.mu.Unlock()
	for key, condition := range conditions {
		condition.LastTransitionTime = metav1.NewTime(r.Clock())
		err := r.markPod(ctx, key, uids[key], condition)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			r.failed(s, key, err)
			continue
		}
		s.mu.Lock()
		if s.conditions[key] == condition {
			delete(s.conditions, key)
		}
		s.mu.Unlock()
	}
}

// markPod writes one. The UID makes it fail for another pod of that name.
func (r *reconciler) markPod(ctx context.Context, key types.NamespacedName, uid types.UID, condition *corev1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid}, "status": map[string]any{"conditions": []*corev1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err = r.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
	return r.written("pods", "write condition of pod "+key.String(), err)
}
