package upgrade

import (
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
	"github.com/refit-project/refit/sidecarset/podmeta"
)

// Step returns the next write of an update in progress: a later stage, or the last step of a hot upgrade. If there is
// none and begin is set, it returns the first write of the update of the pod to the target. A [plan.RefusedError] says
// that it is not possible in place. It returns nil if there is nothing to write now, or if the pod is unreadable.
func (t *Target) Step(pod *corev1.Pod, begin bool, now time.Time) (*inplace.Step, error) {
	p, err := t.progress(pod, now)
	if err != nil {
		return nil, nil //nolint:nilerr // Judge says that the pod is unreadable
	}
	if p.next != nil {
		return t.next(p, now), nil
	}
	c := t.compare(p)
	switch {
	case c.finish: // complete the upgrade in progress first
		return t.finish(p, c.lastSteps(), now)
	case !begin, c.busy, t.has(p.injected) && !c.any() && !t.abandoned(p):
		return nil, nil
	}
	return t.begin(p, c, now)
}

// next returns the next step of the record.
func (t *Target) next(p *progress, now time.Time) *inplace.Step {
	if p.next.Subresource != "" || t.has(p.injected) {
		return p.next
	}
	// This is the last stage, or the record that the only stage is complete: from now on the pod matches the target.
	return p.next.With(t.labels(p.pod), t.annotations(p.pod, t.compare(p), now))
}

// lastSteps returns the last steps of hot upgrades.
func (c *changes) lastSteps() *changes {
	last := &changes{}
	for _, a := range c.hot {
		if a.Kind == hotupgrade.Reset || a.Kind == hotupgrade.Abort {
			last.hot = append(last.hot, a)
		}
	}
	return last
}

func (t *Target) begin(p *progress, c *changes, now time.Time) (*inplace.Step, error) {
	marks := t.annotations(p.pod, c, now)
	update, err := t.plan(p, c)
	if refused := (*plan.RefusedError)(nil); errors.As(err, &refused) && refused.Has(plan.ReasonNoChange) {
		if t.abandoned(p) { // the record has to go as well
			none := &plan.Update{Options: plan.Options{Revision: t.Hashes.Full, Unready: p.unready()}}
			return inplace.BeginSidecars(p.pod, t.SidecarSet, p.record, none, nil, now).With(t.labels(p.pod), marks), nil
		}
		return inplace.MetadataStep(p.pod, "record that the sidecars are of the newest revision", t.labels(p.pod), marks), nil
	}
	if err != nil {
		return nil, err
	}
	step := inplace.BeginSidecars(p.pod, t.SidecarSet, p.record, update, nil, now)
	if step.Kind == inplace.StepWrite {
		step = step.With(t.labels(p.pod), marks)
	}
	return step, nil
}

// finish empties the containers that are no longer needed.
func (t *Target) finish(p *progress, c *changes, now time.Time) (*inplace.Step, error) {
	update, err := t.plan(p, c)
	if err != nil {
		return nil, err
	}
	marks := hotAnnotations(p.pod, c)
	for _, a := range c.hot {
		if a.Kind == hotupgrade.Abort {
			hashes := abortedIn(p.pod)
			if hashes == nil {
				hashes = map[string]string{}
			}
			hashes[t.SidecarSet] = t.Hashes.Full
			marks[v1beta1.AnnotationSidecarSetAborted] = string(must.JSON(hashes))
		}
	}
	return inplace.BeginSidecars(p.pod, t.SidecarSet, p.record, update, nil, now).With(nil, marks), nil
}

// plan returns the plan of an update. All containers are replaced by one write: several sidecars do not depend on each
// other's order.
func (t *Target) plan(p *progress, c *changes) (*plan.Update, error) {
	old := plan.Template(p.pod)
	updated := old.DeepCopy()
	var names []string
	change := func(name, image string, resources *corev1.ResourceRequirements) {
		container := kubelet.Container(&updated.Spec, name)
		if container == nil {
			return
		}
		if image != "" {
			container.Image = image
		}
		if resources != nil {
			container.Resources.Requests, container.Resources.Limits = resources.Requests, resources.Limits
		}
		names = append(names, name)
	}
	for name, image := range c.images {
		change(name, image, nil)
	}
	for name, resources := range c.resources {
		change(name, "", &resources)
	}
	for i := range c.hot {
		if a := &c.hot[i]; a.Container != "" {
			change(a.Container, a.Image, nil)
		}
	}
	update, err := plan.New(old, updated, plan.Options{Revision: t.Hashes.Full, Order: [][]string{names}, Unready: p.unready()})
	return &update, err
}

// annotations returns the annotations that record that the pod matches the target.
func (t *Target) annotations(pod *corev1.Pod, c *changes, now time.Time) map[string]string {
	marks := annotation.Write(pod, &t.Version, metav1.NewTime(now))
	maps.Copy(marks, hotAnnotations(pod, c))
	patched, _ := podmeta.Changes(&pod.ObjectMeta, t.spec.PatchPodMetadata)
	maps.Copy(marks, patched)
	return marks
}

func hotAnnotations(pod *corev1.Pod, c *changes) map[string]string {
	marks, working := map[string]string{}, map[string]string{}
	for i := range c.hot {
		a := &c.hot[i]
		if a.Kind == hotupgrade.Settled || a.Kind == hotupgrade.Wait {
			continue
		}
		maps.Copy(marks, a.Annotations)
		working[a.sidecar] = a.Working
	}
	if len(working) > 0 {
		marks[v1beta1.AnnotationHotUpgradeWorking] = annotation.WriteWorking(pod, working)
	}
	return marks
}
