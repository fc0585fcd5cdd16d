// Package credentialprovider runs kubelet's exec plugins for registry credentials, with the protocol
// credentialprovider.kubelet.k8s.io/v1 and kubelet's configuration file.
//
// The output of a plugin is untrusted: its time and size are limited, and it is not logged.
package credentialprovider
