// Package result is the only package that writes results: it decides when the outcome of a probe, an update or a
// request is sent to the API, for the daemon, the sidecar and the manager.
//
// The Writer coalesces what changes together, paces writes to one object, and retries with back-off. What an outcome
// is (Entry) and the sizes that the API accepts (Cut, LabelValue, FitMessages) are here as well. Where a result goes
// is behind the port Destination: package output has the one for labels, annotations, conditions and fields of API
// objects; the daemon and the manager have their own for NodePodProbes and for pods.
//
// Probing, the work that had the outcome and its repetition, API clients, and what is written do not belong here.
package result
