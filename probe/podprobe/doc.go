// Package podprobe decides about PodProbeMarkers: the probes of each node (NodeSpec), the labels, annotations and
// conditions that a pod gets from its probe results (Desired, Plan), the probes of a pod on a virtual node
// (DesiredOnVirtualNode), and the status of a marker (Status).
//
// The package only decides: it takes values and the time as arguments and returns values. Probing, clients, caches and
// goroutines must stay out.
package podprobe
