// Package podprobe is the plugin pod_probe: the serverless protocol of OpenKruise's PodProbeMarker. On a virtual node
// there is no kruise-daemon; the admission webhook writes the probes of a pod into its annotation
// kruise.io/podprobe, and whoever is there writes the conditions that kruise-daemon and -manager would write.
//
// It contains: reading the annotation, and workers for what is in it. How one asks and how one writes must stay
// out.
package podprobe
