package ownpod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/refit-project/refit/internal/wait"
)

const (
	// watchLife is the minimum time that the API server keeps a watch open; the requested time is up to twice as long, so
	// that the sidecars of many pods do not reconnect together.
	watchLife = 5 * time.Minute

	firstRetry = time.Second
	lastRetry  = 20 * time.Second // up to 30 s with the jitter
)

// Selection is what Follow watches: the object named in Of, or the objects of a collection selected by Labels.
type Selection struct {
	Of     Reference
	Labels string
}

// Follow calls changed with all selected objects by name, first and whenever one of them has changed, until ctx ends. It
// reconnects with growing pauses after a connection breaks or is refused, and calls failed with the error. An object that
// does not exist is not in the map.
func Follow[T any](ctx context.Context, c *Client, s Selection, changed func(map[string]T), failed func(error)) {
	f := follower[T]{client: c, selection: s, changed: changed}
	backoff := wait.Backoff{First: firstRetry, Last: lastRetry}
	for ctx.Err() == nil {
		progress, err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if progress {
			backoff.Reset()
		}
		if err != nil {
			failed(err)
		}
		if err == nil || errors.Is(err, errExpired) {
			continue
		}
		pause := backoff.Next()
		_ = wait.For(ctx, pause/2+rand.N(pause)) //nolint:gosec // jitter, not a secret; the loop sees the end of ctx
	}
}

// Log returns a function for the parameter failed of Follow, which logs the errors.
func Log(logger *slog.Logger, s Selection) func(error) {
	var last string
	return func(err error) {
		if errors.Is(err, errExpired) || err.Error() == last {
			return
		}
		last = err.Error()
		logger.Warn("cannot follow changes: trying again", "of", s.Of.String(), "err", err)
	}
}

// errExpired means that the API server no longer has the history to continue a watch.
var errExpired = errors.New("watch has expired")

type follower[T any] struct {
	client    *Client
	selection Selection
	changed   func(map[string]T)
	items     map[string]T
	version   string // of the collection; empty means list first
}

// round lists, if there is no watch to continue, and watches until the connection ends. It reports whether anything was
// received.
func (f *follower[T]) round(ctx context.Context) (bool, error) {
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return false, err
		}
	}
	return f.watch(ctx)
}

func (f *follower[T]) query(watch bool) map[string]string {
	q := map[string]string{}
	if name := f.selection.Of.Name; name != "" {
		q["fieldSelector"] = "metadata.name=" + name
	}
	if f.selection.Labels != "" {
		q["labelSelector"] = f.selection.Labels
	}
	if watch {
		q["watch"], q["allowWatchBookmarks"] = "true", "true"
		q["resourceVersion"] = f.version
		q["timeoutSeconds"] = strconv.Itoa(int((watchLife + rand.N(watchLife)).Seconds())) //nolint:gosec // jitter, not a secret
	}
	return q
}

func (f *follower[T]) collection() Reference {
	ref := f.selection.Of
	ref.Name = ""
	return ref
}

func (f *follower[T]) list(ctx context.Context) error {
	request := f.client.rest.Get().AbsPath(f.collection().path()...)
	for key, value := range f.query(false) {
		request.Param(key, value)
	}
	b, err := answer(request.Do(ctx))
	if err != nil {
		return named("list", f.selection.Of, err)
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := decode(b, f.selection.Of, &list); err != nil {
		return err
	}
	items := map[string]T{}
	for _, item := range list.Items {
		if err := put(items, item); err != nil {
			return fmt.Errorf("list %s: %w", f.selection.Of, err)
		}
	}
	f.items, f.version = items, list.Metadata.ResourceVersion
	f.changed(maps.Clone(f.items))
	return nil
}

func (f *follower[T]) watch(ctx context.Context) (progress bool, err error) {
	request := f.client.rest.Get().AbsPath(f.collection().path()...)
	for key, value := range f.query(true) {
		request.Param(key, value)
	}
	began := time.Now()
	stream, err := request.Stream(ctx)
	if err != nil {
		f.version = "" // it may have expired
		return false, named("watch", f.selection.Of, err)
	}
	defer stream.Close()
	decoder := json.NewDecoder(stream)
	for {
		var event watchEvent
		if err := decoder.Decode(&event); err != nil {
			progress = progress || time.Since(began) > watchLife/2
			if errors.Is(err, io.EOF) && progress {
				return true, nil // the watch has reached its timeout
			}
			return progress, fmt.Errorf("watch %s: %w", f.selection.Of, err)
		}
		if err := f.take(event); err != nil {
			f.version = ""
			return progress, err
		}
		progress = true
	}
}

type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (f *follower[T]) take(event watchEvent) error {
	var head struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Message string `json:"message"` // of a Status
	}
	if err := decode(event.Object, f.selection.Of, &head); err != nil {
		return err
	}
	switch event.Type {
	case "ADDED", "MODIFIED":
		if err := put(f.items, event.Object); err != nil {
			return fmt.Errorf("watch %s: %w", f.selection.Of, err)
		}
	case "DELETED":
		delete(f.items, head.Metadata.Name)
	case "BOOKMARK":
		f.version = head.Metadata.ResourceVersion
		return nil
	default: // ERROR: 410 in practice, and listing again is right for other errors too
		return fmt.Errorf("watch %s: %w: %s", f.selection.Of, errExpired, head.Message)
	}
	f.version = head.Metadata.ResourceVersion
	f.changed(maps.Clone(f.items))
	return nil
}

func put[T any](items map[string]T, document []byte) error {
	var head struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	var item T
	if err := errors.Join(json.Unmarshal(document, &head), json.Unmarshal(document, &item)); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	items[head.Metadata.Name] = item
	return nil
}

func decode(document []byte, ref Reference, into any) error {
	if err := json.Unmarshal(document, into); err != nil {
		return fmt.Errorf("decode %s: %w", ref, err)
	}
	return nil
}
