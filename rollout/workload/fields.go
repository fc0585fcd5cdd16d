package workload

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/reported"
)

// annotationRestartedAt is what kubectl rollout restart changes. Kubelet restarts nothing for it.
const annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Fields are the fields of pods that templates have changed, each with the value of the present template. All other
// fields of a pod stay as they are: admission webhooks may have changed them.
type Fields struct {
	update   v1alpha1.TemplateUpdate
	template *corev1.PodTemplateSpec
}

// NewFields returns the fields that the present template of a workload changes, compared with earlier ones, in addition
// to the fields of an update that has not ended. The error is a [plan.RefusedError] if a change cannot be made in place.
func NewFields(template *corev1.PodTemplateSpec, former []*corev1.PodTemplateSpec, unfinished *v1alpha1.TemplateUpdate) (*Fields, error) {
	f := &Fields{template: template}
	if unfinished != nil {
		f.update = *unfinished.DeepCopy()
	}
	for _, t := range former {
		update, err := plan.New(withoutHash(t), withoutHash(template), plan.Options{})
		switch {
		case unchanged(err):
			continue
		case err != nil:
			return nil, err
		case t.Annotations[annotationRestartedAt] != template.Annotations[annotationRestartedAt]:
			return nil, &plan.RefusedError{Refusals: []plan.Refusal{{
				Field: "metadata.annotations[" + annotationRestartedAt + "]", Reason: plan.ReasonImmutableField,
				Why: "kubectl rollout restart asks for new pods", Instead: "restart containers in place: kubectl refit restart",
			}}}
		}
		f.add(&update.Changes, t)
	}
	return f, nil
}

// unchanged reports whether an error of [plan.New] says that nothing is different.
func unchanged(err error) bool {
	refused := (*plan.RefusedError)(nil)
	return errors.As(err, &refused) && len(refused.Refusals) == 1 && refused.Refusals[0].Reason == plan.ReasonNoChange
}

func (f *Fields) add(changes *plan.Changes, former *corev1.PodTemplateSpec) {
	labels, annotations := slices.Collect(maps.Keys(changes.Labels)), slices.Collect(maps.Keys(changes.Annotations))
	for _, c := range changes.Containers {
		if c.Image != "" || c.Resources != nil {
			resources := changedResources(plan.Find(&former.Spec, c.Container), plan.Find(&f.template.Spec, c.Container))
			f.addContainer(v1alpha1.UpdatedContainer{Name: c.Container, Image: c.Image != "", Resources: c.Resources != nil, ResourceNames: resources})
		}
		labels = slices.AppendSeq(labels, maps.Keys(c.Metadata.Labels))
		annotations = slices.AppendSeq(annotations, maps.Keys(c.Metadata.Annotations))
	}
	f.update.Labels, f.update.Annotations = union(f.update.Labels, labels), union(f.update.Annotations, annotations)
}

func (f *Fields) addContainer(added v1alpha1.UpdatedContainer) {
	for i := range f.update.Containers {
		if c := &f.update.Containers[i]; c.Name == added.Name {
			if !c.Resources || len(c.ResourceNames) > 0 { // an update without names has all
				c.ResourceNames = union(c.ResourceNames, added.ResourceNames)
			}
			c.Image, c.Resources = c.Image || added.Image, c.Resources || added.Resources
			return
		}
	}
	f.update.Containers = append(f.update.Containers, added)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// sameAs reports whether an update has these fields.
func (f *Fields) sameAs(update *v1alpha1.TemplateUpdate) bool {
	return slices.EqualFunc(f.update.Containers, update.Containers, sameContainer) && slices.Equal(f.update.Labels, update.Labels) &&
		slices.Equal(f.update.Annotations, update.Annotations)
}

func sameContainer(a, b v1alpha1.UpdatedContainer) bool {
	return a.Name == b.Name && a.Image == b.Image && a.Resources == b.Resources && slices.Equal(a.ResourceNames, b.ResourceNames)
}

// none reports whether there are no fields.
func (f *Fields) none() bool {
	return len(f.update.Containers)+len(f.update.Labels)+len(f.update.Annotations) == 0
}

// restartsNothing returns a changed label or annotation if the template has changed nothing else, and no environment variable refers to any
// of them: then no container is restarted, although such annotations often have no other purpose. Otherwise it returns "".
func (f *Fields) restartsNothing() string {
	changed := slices.Concat(f.update.Annotations, f.update.Labels)
	if len(f.update.Containers) > 0 || len(changed) == 0 {
		return ""
	}
	for _, containers := range [][]corev1.Container{f.template.Spec.InitContainers, f.template.Spec.Containers} {
		for i := range containers {
			for _, env := range reported.MetadataEnvs(&containers[i]) {
				if env.Annotation && slices.Contains(f.update.Annotations, env.Key) || !env.Annotation && slices.Contains(f.update.Labels, env.Key) {
					return ""
				}
			}
		}
	}
	return changed[0]
}

// Update returns the update of a pod to the present template. The error is a [plan.RefusedError] if it is not possible in
// place; one with [plan.ReasonNoChange] if the pod has the template.
func (f *Fields) Update(pod *corev1.Pod, options plan.Options) (plan.Update, error) {
	return plan.New(plan.Template(pod), f.wanted(pod), options)
}

// wanted returns a copy of the pod with the changes.
func (f *Fields) wanted(pod *corev1.Pod) *corev1.PodTemplateSpec {
	wanted := plan.Template(pod)
	for _, c := range f.update.Containers {
		to, from := plan.Find(&wanted.Spec, c.Name), plan.Find(&f.template.Spec, c.Name)
		if to == nil || from == nil {
			continue // the plan of the templates has refused that
		}
		if c.Image {
			to.Image = from.Image
		}
		if c.Resources {
			setResources(to, from, c.ResourceNames)
		}
	}
	wanted.Labels = with(wanted.Labels, f.update.Labels, f.template.Labels)
	wanted.Annotations = with(wanted.Annotations, f.update.Annotations, f.template.Annotations)
	return wanted
}

// with returns a map in which some keys are as in another one.
func with(of map[string]string, keys []string, from map[string]string) map[string]string {
	if of == nil {
		of = map[string]string{}
	}
	for _, key := range keys {
		if value, ok := from[key]; ok {
			of[key] = value
		} else {
			delete(of, key)
		}
	}
	return of
}
