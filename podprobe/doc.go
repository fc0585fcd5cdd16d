// Package podprobe decides about PodProbeMarkers: what each node is to probe (NodeSpec), what a pod carries for what its
// probes have said (Want, Plan), what a pod on a virtual node is told (Annotations), and what a marker's user is told
// (Status).
//
// In the room are decisions only: values in, values out, the time as an argument. Probing, clients, caches and
// goroutines may not enter.
package podprobe
