// Package inpod is the plugin pod_probe. It implements the serverless protocol of OpenKruise's PodProbeMarker. On a
// virtual node there is no kruise-daemon. The admission webhook writes the probes of a pod into the annotation
// kruise.io/podprobe of the pod, and an agent writes the conditions that kruise-daemon and kruise-manager would write.
//
// It contains: reading the annotation, and workers for its probes. How probes run and how results are written must stay
// out.
package inpod
