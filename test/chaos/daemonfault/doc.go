// Package daemonfault causes faults of the daemons: it kills them at chosen points, and delays, fails or changes their
// CRI calls. It sees the calls through a CRI proxy, and the daemons' writes in the audit log.
package daemonfault
