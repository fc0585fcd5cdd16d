package workload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// CreatedDuring reports whether a pod was created during an update, so that its image may not have been pulled before.
func CreatedDuring(update *v1alpha1.TemplateUpdate, pod *corev1.Pod) bool {
	return !pod.CreationTimestamp.Before(&update.StartTime)
}

// latePulls is what is known about pulls for pods that may serve and were created during the update, on nodes without an earlier
// pod. Such a pod waits for its pull when its turn comes, so that an update that pauses for days pulls nothing again and again. The
// zero value is for an update without such pods.
type latePulls struct {
	waits   map[string]bool   // nodes that do not have an image yet
	skipped map[string]string // nodes that cannot pull an image before, with the reason
	jobs    []*v1beta1.ImagePullJob
	text    string // of the pulls that are waited for
	failed  string
}

// latePulls looks for the pulls of such pods. It reports whether pods may be updated.
func (v *view) latePulls(observed Observation, left []*pod) (l latePulls, may bool) {
	pods := v.createdDuring(left)
	if len(pods) == 0 || v.policy.Spec.PrePullPolicy == v1alpha1.PrePullNever || v.goesBack() {
		return l, true
	}
	l.waits, l.skipped = map[string]bool{}, map[string]string{}
	for _, p := range v.pulls(pods) {
		v.addLate(p, observed.Pulls, &l)
	}
	c := meta.FindStatusCondition(v.decision.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case l.failed != "":
		v.notPulled(l.failed)
		return l, false
	case len(l.waits) > 0 && c != nil && c.Reason == v1alpha1.ReasonImagePullFailed: // it is tried again
		v.pullLate(&l)
		return l, false
	}
	return l, true
}

// createdDuring returns the pods that may serve and were created during the update, whose nodes had no pod of the workload when the
// update began, and have none that runs the new images.
func (v *view) createdDuring(left []*pod) []*pod {
	update := v.decision.Status.Update
	late := func(p *pod) bool { return CreatedDuring(update, p.Pod) }
	if !slices.ContainsFunc(left, late) {
		return nil
	}
	known := map[string]bool{}
	for _, p := range v.pods {
		if !late(p) || p.has && p.budget.Ready {
			known[p.Spec.NodeName] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(left), func(p *pod) bool { return !p.mayServe() || known[p.Spec.NodeName] })
}

// addLate adds the state of a pull on each of its nodes, and the job that pulls the image on nodes for which there is none.
func (v *view) addLate(p *pull, pulls Pulls, l *latePulls) {
	skip := func(nodes map[string]bool, why string) {
		for node := range nodes {
			l.skipped[node] = why
		}
	}
	if pulls.Off != "" {
		skip(p.nodes, pulls.Off)
		return
	}
	for _, job := range pulls.Jobs {
		if !strings.HasPrefix(job.Name, v.pullName(p.image)) {
			continue
		}
		of := p.without(job)
		if len(of) == 0 {
			continue
		}
		switch state, text := v.stateOf(p, job); {
		case state == pullWaits:
			maps.Copy(l.waits, of)
			l.text = join(l.text, text)
		case state == pullFailed && v.policy.Spec.FailurePolicy != v1alpha1.UpdateFailureContinue:
			l.failed = join(l.failed, text)
		case state != pullDone:
			skip(of, text)
		}
	}
	nodes := maps.Clone(p.nodes)
	note := p.reach(pulls.Nodes, nil)
	maps.DeleteFunc(nodes, func(node string, _ bool) bool { return p.nodes[node] })
	if skip(nodes, note); len(p.nodes) == 0 {
		return
	}
	maps.Copy(l.waits, p.nodes)
	l.text = join(l.text, fmt.Sprintf("0 of %d nodes have %s", len(p.nodes), p.image))
	l.jobs = append(l.jobs, v.job(p, v.pullName(p.image)+"-"+sumOf(p.nodes)))
}

// without removes the nodes of a job from a pull, and returns them.
func (p *pull) without(job *v1beta1.ImagePullJob) map[string]bool {
	of := map[string]bool{}
	if job.Spec.Selector == nil {
		return of
	}
	for _, node := range job.Spec.Selector.Names {
		if p.nodes[node] {
			of[node] = true
			delete(p.nodes, node)
		}
	}
	return of
}

// sumOf names a set of nodes.
func sumOf(nodes map[string]bool) string {
	sum := fnv.New32a()
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		fmt.Fprint(sum, node, "/")
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}

// hold reports whether a pod waits for a pull.
func (l *latePulls) hold(p *pod) bool { return p.mayServe() && l.waits[p.Spec.NodeName] }

// skip notes that a pod is updated without a pull.
func (v *view) skip(l *latePulls, p *pod) {
	if p.mayServe() {
		v.decision.NotPulled = cmp.Or(v.decision.NotPulled, l.skipped[p.Spec.NodeName])
	}
}

// pullLate begins pulls for pods whose turn has come, and says what is waited for.
func (v *view) pullLate(l *latePulls) {
	for _, job := range l.jobs {
		v.act(Action{Kind: ActionPull, Job: job})
	}
	v.waitsForPulls(l.text)
}
