package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/refit-project/refit/internal/must"
)

// maxPaths limits how many differences are listed. With more than that the pods have little in common.
const maxPaths = 20

// differingPaths returns the fields in which two API values differ, as deep as both have the path.
func differingPaths(root string, a, b any) []string {
	var paths []string
	walk(root, Decoded(a), Decoded(b), &paths)
	return paths
}

// Decoded returns an API value as encoding/json decodes its JSON: maps, lists, strings and numbers. Unlike Go structs,
// these only have the fields that are set.
func Decoded(value any) any {
	var decoded any
	if err := json.Unmarshal(must.JSON(value), &decoded); err != nil {
		panic(err) // cannot happen: it has just been encoded
	}
	return decoded
}

func walk(path string, a, b any, paths *[]string) {
	if len(*paths) >= maxPaths || reflect.DeepEqual(a, b) {
		return
	}
	if left, ok := a.(map[string]any); ok {
		if right, ok := b.(map[string]any); ok {
			keys := slices.Collect(maps.Keys(left))
			for key := range right {
				if _, both := left[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				walk(join(path, key), left[key], right[key], paths)
			}
			return
		}
	}
	if left, ok := a.([]any); ok {
		if right, ok := b.([]any); ok && len(left) == len(right) {
			for i := range left {
				walk(fmt.Sprintf("%s[%d]", path, i), left[i], right[i], paths)
			}
			return
		}
	}
	*paths = append(*paths, path)
}

func join(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("%s[%s]", path, key)
	}
	return path + "." + key
}
