// Package status shows the current and past work of Refit: requests, restarts of workloads, and image pulls.
package status
