package output

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/refit-project/refit/internal/foreign"
)

// Edit is the wanted value of one member of an object.
type Edit struct {
	Object Object
	// Path are the unescaped tokens of a JSON Pointer.
	Path []string
	// Subresource through which the member is written. All members of a pod are written through its status, which needs no
	// permission to change its spec.
	Subresource string
	// Want is the value; nil removes the member if its value is one of Ours.
	Want any
	Ours []any
	// Condition, if set, is a pod's condition and replaces Want.
	Condition *WantedCondition
}

// WantedCondition is the wanted condition of a pod without its times, which depend on the present condition. Without a
// Status it is removed if it has the Reason.
type WantedCondition struct {
	Type, Status, Reason, Message string
	At                            time.Time
}

// PatchType is one of the API's media types of patches.
type PatchType string

// Kinds of patches (RFC 7386, RFC 6902, and Kubernetes' own).
const (
	MergePatch     PatchType = "application/merge-patch+json"
	JSONPatch      PatchType = "application/json-patch+json"
	StrategicPatch PatchType = "application/strategic-merge-patch+json"
)

// Patch is one write.
type Patch struct {
	Object      Object
	Subresource string
	Type        PatchType
	Body        []byte
}

// Diff returns the patches that change an object with the given content, as decoded JSON, as the edits want: at most one
// for each subresource, and none without a difference. For an edit that is not possible it returns an error in addition to
// the patches for the others.
func Diff(object Object, content map[string]any, edits []Edit, now time.Time) ([]Patch, error) {
	drafts := map[string]*draft{}
	var errs []string
	for _, edit := range edits {
		subresource := edit.Subresource
		if object.isPod() {
			subresource = "status"
		}
		if drafts[subresource] == nil {
			drafts[subresource] = &draft{merge: map[string]any{}}
		}
		if err := drafts[subresource].add(content, edit, now); err != nil {
			errs = append(errs, err.Error())
		}
	}
	var patches []Patch
	for _, subresource := range []string{"", "status"} {
		d := drafts[subresource]
		if d == nil {
			continue
		}
		made, err := d.patches(object, subresource, content)
		if err != nil {
			return nil, err
		}
		patches = append(patches, made...)
	}
	if len(errs) > 0 {
		return patches, fmt.Errorf("%s: %s", object, errs)
	}
	return patches, nil
}

// draft collects the differences: as a merge patch, which creates missing parents and leaves other members unchanged, and
// as operations for members of arrays, which a merge patch could only replace as a whole.
type draft struct {
	merge map[string]any
	ops   []operation
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (d *draft) add(content map[string]any, edit Edit, now time.Time) error {
	if edit.Condition != nil {
		d.condition(content, *edit.Condition, now)
		return nil
	}
	want, err := normal(edit.Want)
	if err != nil {
		return fmt.Errorf("%s: %w", FormatPointer(edit.Path), err)
	}
	at := find(content, edit.Path)
	if at.blocked {
		return fmt.Errorf("%s: %s is neither an object nor an array with such an element",
			FormatPointer(edit.Path), FormatPointer(edit.Path[:at.depth]))
	}
	switch {
	case want != nil && at.found && reflect.DeepEqual(at.value, want):
		return nil
	case want == nil && !(at.found && slices.ContainsFunc(edit.Ours, func(v any) bool { return reflect.DeepEqual(v, at.value) })):
		return nil
	case !at.inArray:
		set(d.merge, edit.Path, want)
	case want == nil:
		d.ops = append(d.ops, operation{Op: "remove", Path: FormatPointer(edit.Path)})
	default:
		d.ops = append(d.ops, addition(edit.Path, at, want))
	}
	return nil
}

// addition returns an operation that adds the value with its missing parents. Adding an existing member replaces it (RFC
// 6902, 4.1); an element has to be replaced.
func addition(path []string, at place, want any) operation {
	op := operation{Op: "add", Path: FormatPointer(path), Value: want}
	if at.found {
		op.Op = "replace"
		return op
	}
	for i := len(path) - 1; i > at.depth; i-- {
		op.Value = map[string]any{path[i]: op.Value}
	}
	op.Path = FormatPointer(path[:at.depth+1])
	return op
}

// place is the location of a path in a document.
type place struct {
	value   any
	found   bool
	inArray bool
	blocked bool // a parent is a scalar, or an array without the element
	depth   int  // number of tokens that lead to an existing value
}

func find(content map[string]any, path []string) place {
	p := place{value: content}
	for _, token := range path {
		switch parent := p.value.(type) {
		case map[string]any:
			child, ok := parent[token]
			if !ok || child == nil {
				return p
			}
			p.value = child
		case []any:
			p.inArray = true
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				p.blocked = true
				return p
			}
			p.value = parent[i]
		default:
			p.blocked = true
			return p
		}
		p.depth++
	}
	p.found = true
	return p
}

func set(document map[string]any, path []string, value any) {
	for _, token := range path[:len(path)-1] {
		child, ok := document[token].(map[string]any)
		if !ok {
			child = map[string]any{}
			document[token] = child
		}
		document = child
	}
	document[path[len(path)-1]] = value
}

// condition adds a condition, or its removal, to the merge patch. Conditions merge by type (strategic merge patch).
func (d *draft) condition(content map[string]any, wish WantedCondition, now time.Time) {
	var before map[string]any
	current, _ := find(content, []string{"status", "conditions"}).value.([]any)
	for _, c := range current {
		if c, ok := c.(map[string]any); ok && c["type"] == wish.Type {
			before = c
		}
	}
	reason, _ := before["reason"].(string)
	if wish.Status == "" {
		if before != nil && reason == wish.Reason {
			d.addCondition(map[string]any{"type": wish.Type, "$patch": "delete"})
		}
		return
	}
	changed := now
	if before["status"] == wish.Status {
		if message, _ := before["message"].(string); message == wish.Message && reason == wish.Reason {
			return
		}
		if since, ok := before["lastTransitionTime"].(string); ok {
			if t, err := foreign.Time(since); err == nil {
				changed = t
			}
		}
	}
	condition := map[string]any{
		"type": wish.Type, "status": wish.Status, "message": wish.Message,
		"lastTransitionTime": changed.UTC().Format(time.RFC3339),
	}
	if wish.Reason != "" {
		condition["reason"] = wish.Reason
	} else if reason != "" {
		condition["reason"] = nil
	}
	if !wish.At.IsZero() {
		condition["lastProbeTime"] = wish.At.UTC().Format(time.RFC3339)
	}
	d.addCondition(condition)
}

func (d *draft) addCondition(condition map[string]any) {
	var conditions []any
	if status, ok := d.merge["status"].(map[string]any); ok {
		conditions, _ = status["conditions"].([]any)
	}
	set(d.merge, []string{"status", "conditions"}, append(conditions, condition))
}

func (d *draft) patches(object Object, subresource string, content map[string]any) ([]Patch, error) {
	var patches []Patch
	add := func(kind PatchType, content any) error {
		body, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("encode patch of %s: %w", object, err)
		}
		patches = append(patches, Patch{Object: object, Subresource: subresource, Type: kind, Body: body})
		return nil
	}
	if len(d.merge) > 0 {
		kind := MergePatch
		if object.isPod() {
			kind = StrategicPatch
			if object.UID != "" {
				set(d.merge, []string{"metadata", "uid"}, object.UID)
			}
		}
		if err := add(kind, d.merge); err != nil {
			return nil, err
		}
	}
	if len(d.ops) == 0 {
		return patches, nil
	}
	// An index identifies the element only while the array does not change. If a merge patch is sent first, it changes the
	// version itself.
	version, _ := find(content, []string{"metadata", "resourceVersion"}).value.(string)
	if version != "" && len(d.merge) == 0 {
		d.ops = slices.Insert(d.ops, 0, operation{Op: "test", Path: "/metadata/resourceVersion", Value: version})
	}
	err := add(JSONPatch, d.ops)
	return patches, err
}

// normal returns a value as JSON decodes it.
func normal(value any) (any, error) {
	switch value.(type) {
	case nil, string, bool, float64:
		return value, nil
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var v any
	err = json.Unmarshal(b, &v)
	return v, err
}
