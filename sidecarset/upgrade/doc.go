// Package upgrade decides about one pod that a SidecarSet has been injected into: whether its sidecars are those of the spec,
// whether they can be updated in place and why not, and what is to be written next. Every pod is compared with the spec;
// what its annotations say is not trusted alone.
//
// Which pods are updated is decided in package rollout, how the containers of a pod are changed in package inplace.
package upgrade
