package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/refit-project/refit/api/v1beta1"
)

// Patch returns the patch from the JSON of a SidecarSet, as it was sent, to after. before is the SidecarSet decoded
// from it. Fields that the types do not have are not changed.
func Patch(sent []byte, before, after *v1beta1.SidecarSet) ([]jsonpatch.Operation, error) {
	var raw any
	if err := json.Unmarshal(sent, &raw); err != nil {
		return nil, fmt.Errorf("read SidecarSet: %w", err)
	}
	was, err := generic(before)
	if err != nil {
		return nil, err
	}
	is, err := generic(after)
	if err != nil {
		return nil, err
	}
	return operations("", raw, was, is), nil
}

func generic(set *v1beta1.SidecarSet) (value any, err error) {
	text, err := json.Marshal(set)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return nil, fmt.Errorf("encode SidecarSet: %w", err)
	}
	return value, nil
}

// operations returns operations that apply the differences between before and after to sent.
func operations(path string, sent, before, after any) []jsonpatch.Operation {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	object, isObject := sent.(map[string]any)
	fields, ok := after.(map[string]any)
	if isObject && ok {
		return ofObject(path, object, before, fields)
	}
	list, isList := sent.([]any)
	elements, ok := after.([]any)
	if was, _ := before.([]any); isList && ok && len(list) == len(elements) && len(was) == len(elements) {
		var all []jsonpatch.Operation
		for i := range elements {
			all = append(all, operations(path+"/"+strconv.Itoa(i), list[i], was[i], elements[i])...)
		}
		return all
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("replace", path, after)}
}

func ofObject(path string, sent map[string]any, before any, after map[string]any) []jsonpatch.Operation {
	was, _ := before.(map[string]any)
	var all []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		switch value, ok := sent[key]; {
		case ok:
			all = append(all, operations(at, value, was[key], after[key])...)
		case !reflect.DeepEqual(was[key], after[key]):
			all = append(all, jsonpatch.NewOperation("add", at, after[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		_, stays := after[key]
		if _, ok := sent[key]; ok && !stays {
			all = append(all, jsonpatch.NewOperation("remove", path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), nil))
		}
	}
	return all
}
