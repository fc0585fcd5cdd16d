package workload

import "github.com/refit-project/refit/api/refit/v1alpha1"

// Release returns a merge patch that releases the workload: its owner's pause, partition or strategy is in force again.
func (w *Workload) Release() map[string]any {
	patch := map[string]any{"metadata": map[string]any{
		"uid": w.UID, "resourceVersion": w.ResourceVersion, "labels": map[string]any{v1alpha1.LabelHeld: nil},
	}}
	switch {
	case w.OnDelete: // the choice of the owner
	case w.Kind == "Deployment":
		patch["spec"] = map[string]any{"paused": nil}
	case w.Kind == "StatefulSet":
		patch["spec"] = map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": w.Partition}}}
	default:
		patch["spec"] = map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate"}}
	}
	return patch
}
