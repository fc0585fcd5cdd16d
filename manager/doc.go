// Package manager is the program refit-manager. It has the configuration, the scheme, the servers and the wiring. Each
// concern is a package that does not import the others:
//
//   - crr/control: admission, conversion and lifecycle of ContainerRecreateRequests, readiness of drained pods
//   - rollout/control: admission of RestartRollouts, and restarts of workloads a few pods at a time
//   - probe/control: NodePodProbes, results on pods and status of PodProbeMarkers
//   - image/control: ImagePullJobs, ImageListPullJobs and NodeImages
//   - sidecarset/control and sidecarset/webhook: rollout and injection of SidecarSets
//   - certificates: the serving certificate of the webhooks
//
// To add one, write a package with a function Add(mgr ctrl.Manager, cfg Config) error, call it in Run, and pass its cache
// options to cache.Options. What several of them read from the API is in internal/cache.
//
// Responses and writes are decided in the feature packages (crr, probe/podprobe). Nodes must not need anything from here to
// execute a request: requests continue while no manager runs.
package manager
