package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/foreign"
)

// Watch prints the objects in progress, and then a line whenever an object has changed, until ctx ends. It returns nil
// then.
func Watch(ctx context.Context, config Config, out io.Writer) error {
	w := &watcher{Config: config, out: out, last: map[string]string{}}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(lists()))
	for _, list := range lists() {
		group.Go(func() { failed <- w.follow(ctx, list) })
	}
	for range lists() {
		if err := <-failed; err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watcher prints lines of several kinds.
type watcher struct {
	Config
	out   io.Writer
	mutex sync.Mutex
	last  map[string]string // by kind, namespace and name: the last printed line
}

// again is the pause before another watch if one ended at once.
const again = time.Second

// follow prints the changes of a kind. Changes between two watches are found in the list at the start of the second one.
func (w *watcher) follow(ctx context.Context, list client.ObjectList) error {
	for first := true; ; first = false {
		err := w.once(ctx, list, first)
		switch {
		case meta.IsNoMatchError(err), ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		pause := time.NewTimer(again)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

var errWatch = errors.New("the API server has ended the watch")

func (w *watcher) once(ctx context.Context, list client.ObjectList, first bool) error {
	empty, ok := list.DeepCopyObject().(client.ObjectList) // the client decodes into the objects of a list that has some
	if !ok {
		return fmt.Errorf("list %T: not a list", list) // cannot happen
	}
	objects, err := w.list(ctx, empty)
	if err != nil {
		return err
	}
	for _, object := range objects {
		line := Describe(object)
		w.print(line, first && !line.Ended.IsZero())
	}
	changes, err := w.API.Watch(ctx, list, client.InNamespace(w.Namespace))
	if err != nil {
		return err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			object, ok := event.Object.(client.Object)
			switch {
			case event.Type == watch.Error:
				return nil // list again
			case !ok:
				return fmt.Errorf("%w: %T", errWatch, event.Object)
			case event.Type == watch.Deleted:
				w.forget(Describe(object))
			default:
				w.print(Describe(object), false)
			}
		}
	}
}

func (l *Line) key() string { return l.Name + "@" + l.Object.GetNamespace() }

// print prints a line if it has changed; silently only remembers it.
func (w *watcher) print(line Line, silently bool) {
	text := line.Name
	if w.Namespace == "" {
		text = line.Object.GetNamespace() + " " + text
	}
	text += fmt.Sprintf(" %s %s %s", line.Target, line.State, line.Done)
	if line.Detail != "" {
		text += " " + line.Detail
	}
	text = foreign.Printable(strings.Join(strings.Fields(text), " ")) // images and messages are text of others
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.last[line.key()] == text {
		return
	}
	w.last[line.key()] = text
	if !silently {
		fmt.Fprintf(w.out, "%s %s\n", w.Now().Format(time.TimeOnly), text)
	}
}

func (w *watcher) forget(line Line) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.last, line.key())
}
