// Package load is the work that a run of chaos gives to Refit: requests for pods, and applications that change what they
// report to probes.
package load
