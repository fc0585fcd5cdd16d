package policy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/cli/board"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// live shows the pods of an update while it runs: as a table on a terminal, or else as a line for each change.
type live struct {
	*command

	of     *stored
	kind   follow.Kind
	cancel context.CancelFunc
	group  sync.WaitGroup
	once   sync.Once

	mutex  sync.Mutex
	board  *board.Board
	bar    string
	pods   map[string]*corev1.Pod
	update v1alpha1.TemplateUpdate // the last one that the policy has had
	// policy is the last version for the followed template; nil before that.
	policy *v1alpha1.InPlaceUpdatePolicy
}

func newLive(c *command, of *stored) *live {
	l := &live{command: c, of: of, board: board.New(), pods: map[string]*corev1.Pod{}}
	l.kind = follow.Kind{
		API: c.API, List: &corev1.PodList{}, Options: []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: of.selector}},
		See: l.pod,
	}
	return l
}

func (l *live) start(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	l.group.Go(func() { l.kind.Follow(ctx) })
}

// stop ends the table, which stays on the screen. It shows the final state, unless the user has interrupted the command.
func (l *live) stop(ctx context.Context) {
	l.once.Do(func() {
		l.cancel()
		l.group.Wait()
		look, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		l.kind.Read(look)
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.draw()
		l.Output.EndRegion()
	})
}

func (l *live) pod(_ context.Context, object client.Object) {
	pod, ok := object.(*corev1.Pod)
	if !ok || !l.of.owns(pod) {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.pods[pod.Name] = pod
	l.show(pod)
	l.draw()
}

// see shows what a version of the policy says about the pods.
func (l *live) see(policy *v1alpha1.InPlaceUpdatePolicy) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.policy = policy
	if policy.Status.Update != nil {
		l.update = *policy.Status.Update
	}
	for _, pod := range l.pods {
		l.show(pod)
	}
	l.draw()
}

func (l *live) show(pod *corev1.Pod) {
	if l.policy == nil {
		return
	}
	progress, begun := progressOf(pod, l.policy, &l.update, time.Now())
	if !begun {
		return
	}
	for _, line := range l.board.Update(pod, progress, time.Now()) {
		if !l.Output.Terminal() {
			l.Output.Say("%s", line)
		}
	}
}

// progress sets the line below the table. The last one is shown with the final table.
func (l *live) progress(bar string, ended bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.bar = bar; ended {
		return
	}
	if !l.Output.Terminal() || l.board.Empty() {
		l.Output.Wait("%s", bar)
		return
	}
	l.draw()
}

// draw shows the table on a terminal.
func (l *live) draw() {
	if l.board.Empty() {
		return
	}
	columns, most := l.Output.Size()
	l.Output.Region(append(l.board.Lines(l.Output.Colour(), columns, most-1), console.Cut(l.bar, columns)))
}

// progressOf returns how far the update of a pod to the present template is, and false if it has not begun.
func progressOf(pod *corev1.Pod, policy *v1alpha1.InPlaceUpdatePolicy, update *v1alpha1.TemplateUpdate, now time.Time) (to board.Progress, begun bool) {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil || recorded.State.Revision != policy.Status.UpdateRevision {
		return to, false
	}
	to = board.Progress{Containers: containersOf(update, recorded), Old: map[string]string{}}
	for name, instance := range recorded.Extension().Instances {
		to.Old[name] = instance.ContainerID
	}
	for _, failure := range policy.Status.Failures {
		if failure.Pod == pod.Name {
			to.State, to.Ended, to.Failed = "failed: "+failure.Reason, true, true
			return to, true
		}
	}
	known, err := reported.Read(pod)
	if err != nil {
		known = nil // others may have written it
	}
	switch next := inplace.Next(pod, recorded, known, now); {
	case next.Kind == inplace.KindDone && kubelet.Ready(pod):
		to.State, to.Ended = "updated", true
	case next.Kind == inplace.KindDone:
		to.State = "not ready"
	case next.Kind == inplace.KindBlocked:
		to.State = "blocked: " + next.Reason
	case gate.Closed(pod) != nil && len(to.Old) == 0:
		to.State = "draining"
	default:
		to.State = "updating"
	}
	return to, true
}

// containersOf returns the containers that an update changes, for the rows of a pod.
func containersOf(update *v1alpha1.TemplateUpdate, recorded *record.Record) []string {
	var names []string
	for _, c := range update.Containers {
		names = append(names, c.Name)
	}
	for name := range recorded.Extension().Instances {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"-"}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
