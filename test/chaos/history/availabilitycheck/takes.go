package availabilitycheck

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// take is something that somebody has begun on a pod and that stops a container of it, or the pod.
type take struct {
	pod  *pod
	by   string // who has begun it, for the report
	user string // by the name of the API server: who has another one does not know of it at once
	// most is how many pods of the workload may be unavailable, as who has begun it was told; 0: who begun it chose this pod, and answers
	// for it.
	most           int
	ignoresBudgets bool
	evicts         bool // the API server has asked the budgets
	begun          moment
	// over is when nothing is under way any more, back when the pod serves again. Zero: not in the run.
	over, back moment
	changed    moment         // when the pod has shown the new instances of a request
	rollout    string         // the UID of the RestartRollout of the request
	request    *model.Request // nil for what is none
	lost       bool           // the pod could not come back by itself when it was begun
	line       entry.Line
}

func (t *take) underWay(m moment) bool {
	return t.begun.before(m) && (t.over == moment{} || m.before(t.over))
}

// unsure reports whether writes that say how far it is at that moment may be missing.
func (t *take) unsure(m moment) bool {
	return t.pod.doubtful(m) || t.request != nil && t.request.UnsureSince(m.at)
}

func (t *take) out(m moment) bool {
	return t.begun.before(m) && (t.back == moment{} || m.before(t.back))
}

// takes finds what was begun on the pods of a workload.
func (c *check) takes(w *workload) {
	for _, p := range w.pods {
		if t := c.eviction(w, p); t != nil {
			w.takes = append(w.takes, t)
		}
		w.takes = append(w.takes, c.updates(w, p)...)
	}
	for _, r := range c.Requests {
		if i := slices.IndexFunc(w.pods, func(p *pod) bool { return p.UID == r.PodUID }); i >= 0 {
			w.takes = append(w.takes, c.restart(w, w.pods[i], r))
		}
	}
	for _, t := range w.takes {
		t.lost = t.pod.lost(t.begun)
		if t.over == (moment{}) {
			t.over = t.pod.gone
		}
		if t.back == (moment{}) {
			t.back = t.pod.gone
		}
	}
	slices.SortStableFunc(w.takes, func(a, b *take) int {
		switch {
		case a.begun.before(b.begun):
			return -1
		case b.begun.before(a.begun):
			return 1
		}
		return 0
	})
}

// restart is the take of a request. The stop of a container counts until the instance has changed or its grace period has
// passed, whatever became of the request.
func (c *check) restart(w *workload, p *pod, r *model.Request) *take {
	t := &take{pod: p, by: "request " + r.Name, user: r.Created.User, begun: requestMoment(r.Created), line: r.Created.Line, request: r}
	if rollout := c.rollouts[r.Created.Request.Labels[refitv1alpha1.LabelRestartRollout]]; rollout != nil {
		t.by, t.rollout = "RestartRollout "+rollout.created.Rollout.Name, string(rollout.created.Rollout.UID)
		spec := rollout.at(t.begun).Spec
		t.most = most(spec.MaxUnavailable, w.replicas(t.begun.at, t.begun))
		t.ignoresBudgets = spec.PodDisruptionBudgetPolicy == refitv1alpha1.PodDisruptionBudgetIgnore
	}
	changed, again := p.replaced(t.begun, restartedBy(r), func(v *corev1.Pod) bool { return changedBy(v, r) })
	t.changed, t.back = changed, again
	end, ended := c.endOf(r)
	switch stopped := stopBegun(c.Model, r, end, ended); {
	case !ended:
	case stopped.IsZero():
		t.over = end
	default:
		killed := moment{at: stopped.Add(c.Grace(r))}
		t.over = changed
		if changed == (moment{}) || killed.at.Before(changed.at) {
			t.over = killed
		}
		if t.over.before(end) {
			t.over = end
		}
	}
	return t
}

// endOf is the moment of the request's end or deletion.
func (c *check) endOf(r *model.Request) (moment, bool) {
	at, ended := r.EndedAt()
	if terminal := r.Terminal(); terminal != nil && terminal.Received.Equal(at) {
		return requestMoment(*terminal), true
	}
	return moment{at: at}, ended
}

// stopBegun is when the first stop for the request was decided; zero if none was before its end.
func stopBegun(m *model.Model, r *model.Request, end moment, ended bool) time.Time {
	var first time.Time
	see := func(at time.Time) {
		if (first.IsZero() || at.Before(first)) && (!ended || !at.After(end.at)) {
			first = at
		}
	}
	for _, spec := range r.Spec().Containers {
		if spec.StatusContext == nil {
			continue
		}
		id := entry.BareID(spec.StatusContext.ContainerID)
		if w := r.Recorded(spec.Name, id); w != nil {
			see(w.Received)
		}
		if call := m.FirstStop(id); call != nil && !call.Begin.Before(r.Created.Received) {
			see(call.Begin)
		}
	}
	return first
}

// restartedBy are the names of the containers of a request.
func restartedBy(r *model.Request) (names []string) {
	for _, spec := range r.Spec().Containers {
		names = append(names, spec.Name)
	}
	return names
}

// changedBy reports whether the pod shows another instance of every container of the request.
func changedBy(p *corev1.Pod, r *model.Request) bool {
	for _, spec := range r.Spec().Containers {
		status := statusOf(p, spec.Name)
		if status == nil || status.ContainerID == "" || spec.StatusContext != nil && status.ContainerID == spec.StatusContext.ContainerID {
			return false
		}
	}
	return true
}

// setOf is the SidecarSet of an injected container, as it was at that moment.
func (c *check) setOf(container *corev1.Container, m moment) *v1beta1.SidecarSet {
	if !v1beta1.IsInjected(container) {
		return nil
	}
	var found *v1beta1.SidecarSet
	for i := range c.Writes {
		set := c.Writes[i].SidecarSet
		if set == nil || !(moment{entry.Revision(set.ResourceVersion), c.Writes[i].Received}).before(m) {
			continue
		}
		named := slices.ContainsFunc(set.Spec.Containers, func(s v1beta1.SidecarContainer) bool { return s.Name == container.Name })
		if named && (found == nil || entry.Revision(found.ResourceVersion) < entry.Revision(set.ResourceVersion)) {
			found = set
		}
	}
	return found
}

// setMost is how many pods of a workload a SidecarSet may take out. Without maxUnavailablePerWorkload one of them stays.
func setMost(set *v1beta1.SidecarSet, replicas int) int {
	strategy := set.Spec.UpdateStrategy
	all := max(int(set.Status.MatchedPods), replicas)
	per := max(replicas-1, 1)
	if strategy.MaxUnavailablePerWorkload != nil {
		per = most(strategy.MaxUnavailablePerWorkload, replicas)
	}
	return min(most(strategy.MaxUnavailable, all), per)
}

func most(limit *intstr.IntOrString, of int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(limit, &intstr.IntOrString{IntVal: 1}), of, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// eviction is the take of a pod that the manager has evicted. It is over when a pod that was created after it is ready.
func (c *check) eviction(w *workload, p *pod) *take {
	d := p.Deleted
	if d == nil || d.Subresource != "eviction" || d.User != c.Options.Manager || !d.Stored() {
		return nil
	}
	begun := moment{at: d.Received}
	t := &take{pod: p, by: "eviction by a SidecarSet", user: d.User, begun: begun, line: d.Line, evicts: true, most: c.evictionMost(p, w, begun)}
	for _, other := range w.pods {
		if !other.versions[0].Received.After(d.Received) {
			continue
		}
		_, again := other.replaced(begun, nil, func(*corev1.Pod) bool { return true })
		if again != (moment{}) && (t.back == moment{} || again.before(t.back)) {
			t.back = again
		}
	}
	if t.back == (moment{}) {
		t.back = moment{at: c.End.Add(time.Second)}
	}
	t.over = t.back
	return t
}

// evictionMost is the maxUnavailable of the injected SidecarSet that has its pods evicted.
func (c *check) evictionMost(p *pod, w *workload, m moment) int {
	least := 1
	for i := range p.versions[0].Pod.Spec.Containers {
		set := c.setOf(&p.versions[0].Pod.Spec.Containers[i], m)
		if set != nil && set.Spec.UpdateStrategy.RecreatePolicy == v1beta1.RecreateEvict {
			least = setMost(set, w.replicas(m.at, m))
		}
	}
	return least
}
