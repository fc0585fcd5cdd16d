// Package budget says which pods may be taken out of service now. It is the one definition that everything uses which takes
// out several pods one after another: RestartRollouts, rollouts of SidecarSets, evictions, updates by kubectl-refit.
//
//   - A pod is ready, and then it serves and costs one of what may be unavailable; or it is not ready.
//   - A pod on which something is under way counts as unavailable, whoever has begun it, even if it is still ready.
//   - A pod that is not ready comes first and costs nothing more, but may be ready again at any moment: no more than may be
//     unavailable are under way at a time.
//   - PodDisruptionBudgets are asked for both, as an eviction asks them.
//   - Only a pod that cannot become ready by itself is exempt from all of it.
//
// What is done to a pod, and in which order, does not belong here, nor do clients.
package budget
