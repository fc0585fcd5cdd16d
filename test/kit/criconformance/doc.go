// Package criconformance holds the fake runtime and real ones to the same behaviour: one suite that
// drives cri.Client against whatever listens on a CRI socket. What it asserts is what the daemon
// relies on, no more.
//
// It makes its own pods, on the host's network so that no CNI is needed, and removes them. It is
// for tests only.
package criconformance
