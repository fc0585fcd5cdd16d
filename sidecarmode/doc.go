// Package sidecarmode is the program refit-sidecar, which runs in a pod: it reads its configuration, starts the plugins,
// serves their endpoints and its own, and reports what its environment allows.
//
// It contains: loops, HTTP endpoints and wiring. The plugins are in the packages inpod of their features. Decisions of a
// feature must stay out; so must the host, CRI, and the package internal/kube, whose memory every pod would pay for.
package sidecarmode
