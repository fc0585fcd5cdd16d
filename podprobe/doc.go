// Package podprobe decides about PodProbeMarkers: the probes of each node (NodeSpec), the labels, annotations and
// conditions that a pod gets from its probe results (Desired, Plan), the probes of a pod on a virtual node
// (DesiredOnVirtualNode), and the status of a marker (Status).
//
// It holds decisions only: values in, values out, the time as an argument. Probing, clients, caches and goroutines must
// stay out.
package podprobe
