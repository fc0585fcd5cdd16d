// Package stale compares versions of an object: a cache, or an answer that was delayed, may have an older one than is
// already known.
package stale

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether a resource version of an object is certainly older than another one. It is false for versions
// that cannot be compared, for example an empty one.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// Newer reports whether a resource version of an object is newer than another one, or cannot be compared with it.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
