package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// combine is the least time between two updates of a page: changes within it are sent together.
	combine = 300 * time.Millisecond
	// alive is how often something is sent although nothing has changed, and how old what is not watched may be.
	alive = 5 * time.Second
	// slow is how long a browser may need to take an update. Then its stream ends; the browser connects again.
	slow = 10 * time.Second
	// maxStreams bounds the pages that are open at a time.
	maxStreams = 32
)

// stream sends the changes of a page as server-sent events, until the browser leaves. Nothing is queued: an update is made from the
// present objects when the previous one has been taken.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many open pages", http.StatusServiceUnavailable)
		return
	}
	page, err := s.page(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	changed := make(chan struct{}, 1)
	see, release := s.open(r.Context(), page, changed)
	defer release()
	w.Header().Set("Content-Type", "text/event-stream")
	to := sender{w: w, control: http.NewResponseController(w)}
	timer := time.NewTicker(alive)
	defer timer.Stop()
	for {
		if err := to.send(r.Context(), see); err != nil {
			return
		}
		if !wait(r.Context(), max(combine, page.pause), nil, nil) || !wait(r.Context(), 0, changed, timer.C) {
			return
		}
	}
}

// wait waits for a time, a change or a tick, and returns false when the browser has left.
func wait(ctx context.Context, pause time.Duration, changed <-chan struct{}, tick <-chan time.Time) bool {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-tick:
	}
	return true
}

// sender sends what has changed since the last view.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    *View
}

func (t *sender) send(ctx context.Context, see func(context.Context) (*View, error)) error {
	view, err := see(ctx)
	if err != nil {
		view = t.gone(err)
	}
	event := ": nothing has changed\n\n"
	if c, changed := difference(t.last, view); changed {
		data, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode changes: %w", err)
		}
		event = "data: " + string(data) + "\n\n"
	}
	t.last = view
	if err := t.control.SetWriteDeadline(time.Now().Add(slow)); err != nil {
		return fmt.Errorf("limit the time of an update: %w", err)
	}
	if _, err := t.w.Write([]byte(event)); err != nil {
		return fmt.Errorf("send changes: %w", err)
	}
	if err := t.control.Flush(); err != nil {
		return fmt.Errorf("send changes: %w", err)
	}
	return nil
}

// gone returns the last view with an error, as after the end of an object.
func (t *sender) gone(err error) *View {
	view := View{Head: Head{Title: "This page cannot be shown"}}
	if t.last != nil {
		view = *t.last
	}
	view.Head.Summary, view.Head.Actions = "This cannot be read any more: "+err.Error(), nil
	return &view
}
