// Package turn lets a process wait until it may make a pod unavailable, in agreement with other processes that do the
// same with pods of the same workload and only share the API server. It reads and writes; package rollout/turn decides.
package turn
