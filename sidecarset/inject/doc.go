// Package inject decides what SidecarSets add to a new pod. It works on the JSON of the pod: parts that it does not
// change are not decoded, so that fields unknown to this version are kept.
//
// The result only depends on the pod, the SidecarSets and the key of the request. If the pod has already been injected,
// because the webhook is called again or because a user creates a pod from the manifest of another one, the result is
// the same as for the pod before its injection.
package inject
