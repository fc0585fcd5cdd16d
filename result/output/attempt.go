package result

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// write attempts the objects that are chosen, one after another.
func (w *Writer) write(ctx context.Context, chosen func(*object) bool) {
	w.mu.Lock()
	var todo []Object
	for key, o := range w.objects {
		if chosen(o) {
			todo = append(todo, key)
		}
	}
	w.mu.Unlock()
	for _, key := range todo {
		w.attempt(ctx, key)
	}
}

// attempt brings one object up to date.
func (w *Writer) attempt(ctx context.Context, key Object) {
	w.mu.Lock()
	o := w.objects[key]
	wanted, edits := o.wanted, w.editsOf(key)
	o.due = time.Time{}
	assumed := o.assumed
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patches, assumed, err := w.bring(ctx, key, edits, assumed)

	w.mu.Lock()
	defer w.mu.Unlock()
	before := o.err
	o.attempted, o.err, o.last, o.assumed = wanted, err, time.Now(), assumed
	o.retry = min(max(o.retry*2, firstRetry), lastRetry)
	if err == nil {
		o.retry = 0
	} else {
		w.schedule(o)
	}
	if err != nil && (before == nil || before.Error() != err.Error()) {
		w.config.Logger.Warn("result not written", "object", key.String(), "err", err)
	}
	if w.config.Written != nil {
		w.config.Written(key, patches, err)
	}
	close(w.tried)
	w.tried = make(chan struct{})
}

// bring reads an object, and patches it if it is not as wanted.
func (w *Writer) bring(ctx context.Context, key Object, edits []Edit, assumed map[string]any) (int, map[string]any, error) {
	content, err := w.config.Patcher.Read(ctx, key)
	blind := errors.Is(err, ErrForbidden)
	if err != nil && !blind {
		return 0, assumed, err
	}
	if blind {
		content = assumed
		if i := slices.IndexFunc(edits, mayBeInArray); i >= 0 {
			return 0, assumed, fmt.Errorf("%s of %s could lie in an array, and the object may not be read: %w",
				FormatPointer(edits[i].Path), key, err)
		}
	}
	patches, fault := Diff(key, content, edits, time.Now())
	for i, patch := range patches {
		if err := w.config.Patcher.Patch(ctx, patch); err != nil {
			return i, assumed, err
		}
	}
	if blind && fault == nil {
		assumed = assume(assumed, edits)
	}
	return len(patches), assumed, fault
}

func mayBeInArray(edit Edit) bool {
	return slices.ContainsFunc(edit.Path, func(token string) bool {
		_, err := strconv.Atoi(token)
		return err == nil && edit.Path[0] != "metadata" && edit.Path[0] != "data"
	})
}

// editsOf are the wishes of all sources for one object. Of several for one member the latest counts, but a
// value before an absence: that another source has nothing to mark is no reason to take a mark away.
func (w *Writer) editsOf(key Object) []Edit {
	all := make([]*source, 0, len(w.sources))
	for _, s := range w.sources {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *source) int { return cmp.Compare(a.put, b.put) })
	wishes := map[string]Edit{}
	for _, s := range all {
		for _, edit := range s.edits {
			if edit.Object != key {
				continue
			}
			member := edit.Subresource + "\x00" + strings.Join(edit.Path, "\x00")
			if before, ok := wishes[member]; ok && edit.wantsAway() {
				if before.wantsAway() {
					before.Ours = append(slices.Clone(before.Ours), edit.Ours...)
					wishes[member] = before
				}
				continue
			}
			wishes[member] = edit
		}
	}
	edits := make([]Edit, 0, len(wishes))
	for _, edit := range wishes {
		edits = append(edits, edit)
	}
	slices.SortFunc(edits, func(a, b Edit) int { return slices.Compare(a.Path, b.Path) })
	return edits
}

func (e Edit) wantsAway() bool { return e.Want == nil && e.Condition == nil }

// assume is what an object holds of ours after the edits.
func assume(content map[string]any, edits []Edit) map[string]any {
	if content == nil {
		content = map[string]any{}
	}
	for _, edit := range edits {
		switch {
		case edit.Condition != nil:
			conditions, _ := find(content, []string{"status", "conditions"}).value.([]any)
			conditions = slices.DeleteFunc(conditions, func(c any) bool {
				condition, ok := c.(map[string]any)
				return ok && condition["type"] == edit.Condition.Type
			})
			set(content, []string{"status", "conditions"}, append(conditions, map[string]any{
				"type": edit.Condition.Type, "status": edit.Condition.Status, "message": edit.Condition.Message,
			}))
		case edit.Want != nil:
			if want, err := normal(edit.Want); err == nil {
				set(content, edit.Path, want)
			}
		case find(content, edit.Path).found:
			set(content, edit.Path, nil)
		}
	}
	return content
}

func sameTarget(a, b Target) bool { return reflect.DeepEqual(a, b) }

func setGauge(meter Meter, name string, e Entry) {
	value, err := strconv.ParseFloat(strings.TrimSpace(e.Value), 64)
	if err != nil || e.State != Succeeded {
		meter.Clear(name)
		return
	}
	meter.Set(name, value)
}
