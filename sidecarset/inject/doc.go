// Package inject decides what SidecarSets add to a pod that is being created. It works on the JSON of the pod: what it does
// not have to change is not decoded, so that fields which this version does not know are kept.
//
// The outcome depends on nothing but the pod, the SidecarSets and the key of the request. Injection of a pod that has been
// injected, because the webhook is invoked again or because a user creates a pod from the manifest of another, has the
// outcome of injection of the pod before.
package inject
