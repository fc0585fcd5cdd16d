// Package turn lets a process wait until it may take a pod out of service, beside other processes that do the same with pods of the
// same workload and share nothing with it but the API server. It reads and writes; what to do is decided in package rollout/turn.
package turn
