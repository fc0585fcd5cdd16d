package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refit-project/refit/internal/result"
)

// destination implements result.Destination for a Writer.
type destination struct{ *Writer }

// Write implements result.Destination: it reads an object, and patches it if it differs from what is wanted.
func (d destination) Write(ctx context.Context, key Object) (result.Requests, error) {
	d.mu.Lock()
	edits, unread := d.editsOf(key), d.unread[key]
	d.mu.Unlock()
	sent := result.Requests{Reads: 1}
	content, err := d.config.Patcher.Read(ctx, key)
	forbidden := errors.Is(err, ErrForbidden)
	switch {
	case forbidden:
		content = unread
		if i := slices.IndexFunc(edits, mayBeInArray); i >= 0 {
			return sent, fmt.Errorf("%s of %s could be in an array, and the object may not be read: %w", FormatPointer(edits[i].Path), key, err)
		}
	case err != nil:
		return sent, err
	}
	patches, diffErr := Diff(key, content, edits, time.Now())
	for _, patch := range patches {
		if err := d.config.Patcher.Patch(ctx, patch); err != nil {
			return sent, err
		}
		sent.Writes++
	}
	if forbidden && diffErr == nil {
		d.mu.Lock()
		d.unread[key] = assume(unread, edits)
		d.mu.Unlock()
	}
	return sent, diffErr
}

func mayBeInArray(edit Edit) bool {
	return slices.ContainsFunc(edit.Path, func(token string) bool {
		_, err := strconv.Atoi(token)
		return err == nil && edit.Path[0] != "metadata" && edit.Path[0] != "data"
	})
}

// editsOf returns the edits of all sources for one object. If several edit the same member, the latest counts, but an edit
// with a value has precedence over one that removes the member: that another source wants no label is no reason to remove
// it. mu is held.
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
			if before, ok := wishes[member]; ok && edit.removes() {
				if before.removes() {
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

func (e Edit) removes() bool {
	return e.Want == nil && (e.Condition == nil || e.Condition.Status == "")
}

// assume returns the expected content after the edits of an object that may not be read.
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
			if !edit.removes() {
				conditions = append(conditions, map[string]any{
					"type": edit.Condition.Type, "status": edit.Condition.Status, "reason": edit.Condition.Reason, "message": edit.Condition.Message,
				})
			}
			set(content, []string{"status", "conditions"}, conditions)
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
