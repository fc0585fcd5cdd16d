package cli

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/board"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// live shows the restarts of a rollout while it runs: as a table on a terminal, or else as a line for each change.
type live struct {
	restarter *restarter
	cancel    context.CancelFunc
	kinds     []follow.Kind
	group     sync.WaitGroup
	once      sync.Once

	mutex sync.Mutex
	board *board.Board
	bar   string
}

// live starts to show the restarts of a rollout, until stop is called.
func (r *restarter) live(ctx context.Context, object *v1alpha1.RestartRollout) *live {
	watching, cancel := context.WithCancel(ctx)
	l := &live{restarter: r, cancel: cancel, board: board.New()}
	within := client.InNamespace(r.Namespace)
	l.kinds = []follow.Kind{{API: r.API, List: &corev1.PodList{}, Options: []client.ListOption{within, client.MatchingLabelsSelector{Selector: r.selector}}, See: l.pod}, {
		API: r.API, List: &v1beta1.ContainerRecreateRequestList{},
		Options: []client.ListOption{within, client.MatchingLabels{v1alpha1.LabelRestartRollout: string(object.UID)}}, See: l.request,
	}}
	for _, k := range l.kinds {
		l.group.Go(func() { k.Follow(watching) })
	}
	return l
}

// lastLook limits the final read of all objects.
const lastLook = 5 * time.Second

// stop ends the table, which stays on the screen. It shows the final state, unless the user has interrupted the command.
func (l *live) stop(ctx context.Context) {
	l.once.Do(func() {
		l.cancel()
		l.group.Wait()
		look, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		for _, k := range l.kinds {
			k.Read(look)
		}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.draw()
		l.restarter.Output.EndRegion()
	})
}

// progress sets the line below the table. The last one is shown with the final table.
func (l *live) progress(bar string, ended bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.bar = bar; ended {
		return
	}
	if !l.restarter.Output.Terminal() || l.board.Empty() {
		l.restarter.Output.Wait("%s", bar)
		return
	}
	l.draw()
}

// draw shows the table on a terminal.
func (l *live) draw() {
	if l.board.Empty() {
		return
	}
	output := l.restarter.Output
	columns, most := output.Size()
	var below []string
	if l.bar != "" {
		below = append(below, console.Cut(l.bar, columns))
	}
	output.Region(append(l.board.Lines(output.Colour(), columns, most-len(below)), below...))
}

func (l *live) request(ctx context.Context, object client.Object) {
	request, ok := object.(*v1beta1.ContainerRecreateRequest)
	if !ok {
		return
	}
	pod := l.restarted(ctx, request)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if pod != nil {
		l.board.Pod(pod, time.Now())
	}
	for _, line := range l.board.Request(request, time.Now()) {
		if !l.restarter.Output.Terminal() {
			l.restarter.Output.Say("%s", line)
		}
	}
	l.draw()
}

// restarted returns the pod of a completed request, with the instance that runs now, or nil for other requests.
func (l *live) restarted(ctx context.Context, request *v1beta1.ContainerRecreateRequest) *corev1.Pod {
	if !crr.Completed(request) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	pod := &corev1.Pod{}
	if err := l.restarter.API.Get(ctx, l.restarter.key(request.Spec.PodName), pod); err != nil {
		return nil // the row is shown without it
	}
	return pod
}

func (l *live) pod(_ context.Context, object client.Object) {
	if pod, ok := object.(*corev1.Pod); ok {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.board.Pod(pod, time.Now())
		l.draw()
	}
}
