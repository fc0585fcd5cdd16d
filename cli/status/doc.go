// Package status shows what Refit does and has done: requests, restarts of workloads, and image pulls.
package status
