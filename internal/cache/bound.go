package cache

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
)

// maxAnnotations bounds keys and values of the annotations of an object that is not a pod, in bytes. Anyone who may create
// objects in one namespace decides what is in them, up to the maximum size of an object.
const maxAnnotations = 32 << 10

// trimObject is the transform of all other objects: it removes managedFields and, if the annotations exceed a bound, the
// longest ones. No such object is written as a whole.
func trimObject(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("trim object: %w", err)
	}
	accessor.SetManagedFields(nil)
	annotations := accessor.GetAnnotations()
	size := textSize(annotations)
	if size <= maxAnnotations {
		return object, nil
	}
	kept := maps.Clone(annotations)
	longestFirst := func(a, b string) int { return len(b) + len(kept[b]) - len(a) - len(kept[a]) }
	for _, key := range slices.SortedFunc(maps.Keys(annotations), longestFirst) {
		if size <= maxAnnotations {
			break
		}
		size -= len(key) + len(kept[key])
		delete(kept, key)
	}
	accessor.SetAnnotations(kept)
	return object, nil
}

func textSize(texts map[string]string) int {
	size := 0
	for key, value := range texts {
		size += len(key) + len(value)
	}
	return size
}
