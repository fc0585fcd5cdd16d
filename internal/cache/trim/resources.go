package trim

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Bounds of what is shared at a time: the number of different resources of containers, and the encoding of each, in bytes.
const (
	maxShared       = 1024
	maxSharedLength = 1 << 10
)

// resources are shared by the cached containers that have the same ones.
var resources = &sharedResources{}

// sharedResources keeps resources by their encoding. The maps in them must not be changed.
type sharedResources struct {
	mu   sync.Mutex
	kept map[string]corev1.ResourceRequirements
}

// intern returns resources equal to r that other containers share. The maps of two quantities take more memory than the rest
// of a trimmed container. If there are too many different ones, sharing begins again: those that are kept then stay in memory
// only as long as containers have them.
func (s *sharedResources) intern(r *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if len(r.Limits)+len(r.Requests)+len(r.Claims) == 0 {
		return corev1.ResourceRequirements{}
	}
	encoded, err := r.Marshal()
	if err != nil || len(encoded) > maxSharedLength {
		return *r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared, ok := s.kept[string(encoded)]; ok {
		return shared
	}
	if s.kept == nil || len(s.kept) >= maxShared {
		s.kept = map[string]corev1.ResourceRequirements{}
	}
	s.kept[string(encoded)] = *r
	return *r
}
