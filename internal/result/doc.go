// Package result is the only package that writes results: it decides when the outcome of a probe, an update or a
// request is sent to the API, for the daemon, the sidecar and the manager.
//
// The Writer coalesces changes, limits the rate of writes to one object, and retries with back-off. The type of an outcome
// (Entry) and the sizes that the API accepts (Cut, LabelValue, FitMessages) are here as well. The target of a result is the
// interface Destination: package output implements it for labels, annotations, conditions and fields of API objects; the
// daemon and the manager implement it for NodePodProbes and for pods.
//
// Probing, the work that has the outcome and its repetition, API clients, and the content of what is written do not belong
// here.
package result
