package control

import (
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/internal/stale"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// set is the state of a SidecarSet: its newest version, and what is known about its pods.
type set struct {
	object   *v1beta1.SidecarSet
	target   *upgrade.Target
	strategy rollout.Strategy
	selector match.Selector
	// Only used by the reconciler.
	complete bool        // all pods have been observed; budgets computed from some of the pods would be too large
	pulled   bool        // the images have been pulled
	reported report.Last // the last written status

	mu    sync.Mutex
	fleet *rollout.Fleet
	pods  map[types.NamespacedName]*entry
	// pending are the pods for which something has to be done or reported. Without it each reconciliation would depend on
	// the number of all pods.
	pending    map[types.NamespacedName]*entry
	repair     missed.Repair
	gone       map[types.UID]bool // pods deleted while all are read from the API server; nil at other times
	held       rollout.Hold       // of the last selection
	holders    string             // pods that hold it, of the last selection
	disruption string             // PodDisruptionBudget that blocks one of its pods, as namespace/name
}

// newSet compiles a SidecarSet. It returns errors about selectors, which admission refuses.
func newSet(object *v1beta1.SidecarSet, latest string, history []*appsv1.ControllerRevision) (*set, error) {
	s := &set{object: object, pods: map[types.NamespacedName]*entry{}, pending: map[types.NamespacedName]*entry{}}
	number, err := strconv.ParseUint(object.ResourceVersion, 10, 62)
	if err != nil {
		number = uint64(object.Generation) //nolint:gosec // not negative. Resource versions are numbers; if not, generations grow too
	}
	s.target = upgrade.NewTarget(object, latest, number, upgrade.NewHistory(history))
	if s.selector, err = match.NewSelector(&object.Spec); err != nil {
		return nil, err
	}
	if s.strategy, err = rollout.NewStrategy(&object.Spec.UpdateStrategy, status.Paused(object, latest)); err != nil {
		return nil, err
	}
	// Otherwise the replacement of an evicted pod would be evicted again, and so on.
	s.strategy.Recreate = s.strategy.Recreate && choice.InjectsLatest(object, latest, history)
	s.fleet = rollout.NewFleet(s.strategy.Scatter)
	return s, nil
}

// inherit copies state from the previous version of the SidecarSet: which of our writes the cache may not have yet, and
// which pods were evicted.
func (s *set) inherit(before *set) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for key, e := range before.pods {
		s.put(key, &entry{uid: e.uid, version: e.version, updated: e.updated, leaving: e.leaving, ending: e.ending})
	}
	s.repair = before.repair
	s.reported = before.reported.Inherit()
	s.fleet.Inherit(before.fleet)
}

// observe updates what is known about a pod. selected says that the SidecarSet selects it. why is the reason if it is
// selected and was not injected, or nil. requests are the requests that name the pod. It reports whether anything has
// changed.
func (s *set) observe(pod *corev1.Pod, selected bool, why *missed.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	e := s.entry(key)
	injected := slices.Contains(annotation.Names(pod), s.object.Name)
	if s.gone[pod.UID] {
		return false
	}
	if stale.Older(pod.ResourceVersion, e.version) {
		return selected && injected && upgrade.Active(pod) && e.uid == pod.UID && s.observeBehind(key, pod, requests, now)
	}
	before, had := s.fleet.Get(key)
	was := e.missed
	if !selected || !upgrade.Active(pod) || !injected {
		s.forget(key)
		if selected && (injected || why != nil) {
			s.recordDeleted(key, pod, injected)
		}
		if !selected || !upgrade.Active(pod) || why == nil {
			return had || was != nil
		}
		e = s.entry(key)
		e.missed = why
		s.put(key, e)
		return had || was == nil || *was != *why
	}
	e = s.judge(key, pod, requests, now)
	after, _ := s.fleet.Get(key)
	return e.condition != nil || e.unfinished || e.unreadable != "" || !had || was != nil || !before.Equal(&after)
}

// observeBehind adds a pod to the fleet of another spec although the cache does not have our last write to it yet. The update that this
// began counts until it has. It reports whether that is new.
func (s *set) observeBehind(key types.NamespacedName, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) bool {
	if _, known := s.fleet.Get(key); known {
		return false
	}
	s.judge(key, pod, requests, now)
	written, _ := s.fleet.Get(key)
	written.InFlight = true
	s.fleet.Set(written)
	return true
}

// judge compares a pod with the target. The caller holds the lock.
func (s *set) judge(key types.NamespacedName, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) *entry {
	e := s.entry(key).of(pod.UID)
	e.missed = nil
	marks := pod.Annotations[v1beta1.AnnotationSidecarSetHash] + pod.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage]
	if e.judgedFor != marks || e.judgedFor == "" {
		e.obstacles, e.refused, e.judgedFor = s.target.Obstacles(pod), nil, marks
	}
	injected := annotation.Of(pod, s.object.Name)
	if injected != nil {
		e.revision = injected.ControllerRevision
	}
	verdict := s.target.Judge(pod, append(slices.Clone(e.obstacles), e.refused...), now)
	seen, again := budget.ObserveBeside(s.object.Name, pod, requests, 0, now)
	view := verdict.Pod(pod, &seen, e.retryAt)
	view.Ours = e.updated
	view.Unjudged = pod.Annotations[v1beta1.AnnotationSidecarSetHash] == tooLarge // it may well be of the newest spec
	s.fleet.Set(view)
	e.due = verdict.Again.Or(again.Time)
	e.unfinished = verdict.Continue && !now.Before(e.retryAt)
	if verdict.Continue && !e.unfinished {
		e.due = e.due.Or(e.retryAt)
	}
	verdict.InPlace = verdict.InPlace || e.updated
	e.condition = upgrade.Condition(pod, s.object.Name, &verdict, &s.strategy)
	e.problem, e.failed = nil, verdict.Failed || verdict.State == rollout.Aborted
	if e.failed || verdict.State == rollout.NotUpgradable {
		e.problem = new(verdict.Message)
	}
	e.unreadable = ""
	if (verdict.Unreadable || injected == nil) && !e.reported {
		e.unreadable = verdict.Message
	}
	s.put(key, e)
	return e
}

// unjudged records a pod that cannot be evaluated as neither available nor updatable. It reports whether that is new.
func (s *set) unjudged(pod *corev1.Pod, cause error, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	before, _ := s.fleet.Get(key)
	e := s.entry(key)
	s.forget(key)
	if s.gone[pod.UID] || pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
		return before.UID != ""
	}
	after := upgrade.Unjudged(pod, &before)
	s.fleet.Set(after)
	e = e.of(pod.UID)
	e.missed, e.condition, e.unfinished = nil, nil, false
	e.failed, e.problem, e.due = false, new("not judged: "+report.Short(cause)), recheck.On(now.Add(lastRetry))
	s.put(key, e)
	return !before.Equal(&after)
}
