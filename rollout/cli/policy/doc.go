// Package policy has the commands of kubectl-refit for workloads with an InPlaceUpdatePolicy: they change the template of a workload,
// follow its update to the end, pause, promote and undo it. refit-manager updates the pods. Flags must stay out.
package policy
