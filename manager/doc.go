// Package manager is the mode of refit-manager, which runs beside the API server. The root holds configuration, scheme,
// servers and wiring. Each concern is a package below it that does not import the others:
//
//   - requests: admission, conversion and lifecycle of ContainerRecreateRequests, readiness of pods that are drained
//   - rollouts: admission of RestartRollouts, and restarts of workloads a few pods at a time
//   - podprobes: NodePodProbes, results on pods and status of PodProbeMarkers
//   - certificates: the serving certificate of the webhooks
//
// To add one, write a package with a function Add(mgr ctrl.Manager, cfg Config) error, call it in Run, and give what it
// adds to the cache to cache.Options. What several of them read from the API is in package cache.
//
// What to answer and what to write is decided in the features (crr, podprobe). Nothing that a node needs to carry out a
// request may enter: requests go on while no manager runs.
package manager
