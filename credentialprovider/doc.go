// Package credentialprovider asks kubelet's exec plugins for registry credentials, by the protocol
// credentialprovider.kubelet.k8s.io/v1 and with kubelet's configuration file.
//
// What a plugin writes comes from outside: time and size are bounded, and nothing of it is logged.
package credentialprovider
