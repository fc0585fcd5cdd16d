// Package budget decides which pods may be made unavailable now. All code that makes several pods unavailable one after
// another uses this definition: RestartRollouts, rollouts of SidecarSets, evictions, and updates by kubectl-refit.
//
//   - A ready pod serves, and uses one of the allowed unavailable pods. Other pods are not ready.
//   - A pod on which an operation is in progress counts as unavailable, whoever has begun it, even if the pod is still
//     ready.
//   - A pod that is not ready comes first and uses nothing more. It may become ready at any moment, so operations are
//     in progress on no more pods than may be unavailable.
//   - PodDisruptionBudgets are checked for both, like for an eviction.
//   - Only a pod that cannot become ready by itself is exempt from all rules.
//
// What is done to a pod, and in which order, does not belong here, nor do clients.
package budget
