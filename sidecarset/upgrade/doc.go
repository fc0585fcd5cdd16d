// Package upgrade decides about one pod with the containers of a SidecarSet: whether its sidecars match the spec,
// whether they can be updated in place and why not, and what to write next. Every pod is compared with the spec; its
// annotations alone are not trusted.
//
// Package rollout decides which pods are updated, and package inplace how the containers of a pod are changed.
package upgrade
