// Package workload decides how the running pods of a Deployment, StatefulSet or DaemonSet follow the template of their
// workload in place, for an InPlaceUpdatePolicy: which fields of which pods differ from the template, which pods are
// updated next, when the workload is released, and what the status of the policy is (Next).
//
// The workload is held during an update by Kubernetes' own means, see [Workload]. What was there before can be read
// from the workload itself. The progress is in the records of the pods (package inplace/record) and in the status of the
// policy, so that any process can continue.
//
// How one pod is updated is decided by package inplace, and how many may be unavailable by package budget. Clients do not
// belong here.
package workload
