package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/internal/recheck"
)

// Memory keeps the state of the pods of one policy from one call of Next to the following one. Without it each decision would
// compare all pods and read the records of their updates, although few have changed. The zero value is empty. Two calls must
// not use the same Memory at the same time.
type Memory struct {
	of   string // the template and the policy with which the pods were compared
	pods map[types.UID]*knownPod
}

// knownPod is the state of a pod in one version, without the pod.
type knownPod struct {
	version string
	until   recheck.At // when to look at the pod again even if it has not changed
	again   recheck.At // when to call Next again
	pod     pod
}

// unsettled is how long the state of a pod is kept that is not available, is being updated, or has failed.
const unsettled = 10 * time.Second

// remember makes the memory forget the pods if they were compared with another template or policy.
func (v *view) remember(m *Memory) {
	if m == nil || v.fields == nil {
		return
	}
	w := v.workload
	of := string(must.JSON([]any{v.policy.UID, v.policy.Generation, w.UID, w.Generation, w.Revision, w.Label, w.current, v.fields.update, v.decision.Status.Update}))
	if m.of != of || m.pods == nil {
		m.of, m.pods = of, map[types.UID]*knownPod{}
	}
	v.memory = m
}

// state returns the state of a pod, which is taken from the memory if the pod has not changed.
func (v *view) state(item *corev1.Pod) pod {
	usable := v.memory != nil && item.ResourceVersion != "" && len(v.requests[item.Name]) == 0
	if usable {
		if kept := v.memory.pods[item.UID]; kept != nil && kept.version == item.ResourceVersion && !kept.until.Passed(v.now) {
			v.again(kept.again.Time)
			p := kept.pod
			p.Pod = item
			return p
		}
	}
	before := v.decision.Again
	v.decision.Again = recheck.At{}
	p := v.podState(item)
	again := v.decision.Again
	v.decision.Again = before.Or(again.Time)
	if usable {
		kept := &knownPod{version: item.ResourceVersion, again: again, until: again, pod: p}
		kept.pod.Pod = nil
		if !p.done() || p.budget.UnderWay || p.failure != nil {
			kept.until = again.Or(v.now.Add(unsettled))
		}
		v.memory.pods[item.UID] = kept
	}
	return p
}

// forget removes pods that do not exist any more.
func (v *view) forget(items []*corev1.Pod) {
	if v.memory == nil || len(v.memory.pods) <= len(items) {
		return
	}
	kept := make(map[types.UID]*knownPod, len(items))
	for _, item := range items {
		if of := v.memory.pods[item.UID]; of != nil {
			kept[item.UID] = of
		}
	}
	v.memory.pods = kept
}
