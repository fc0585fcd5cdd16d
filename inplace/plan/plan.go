package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// Options are the options of New.
type Options struct {
	// Revision names the new state, so that the caller can compare it later. It may be empty.
	Revision string
	// Order is the order in which containers are replaced: the containers of a group together, the groups one after
	// another. A container that is not named belongs to the first group. Empty means the launch order of the pod, see
	// [New].
	Order [][]string
	// DrainSeconds is how long the pod is not ready before the first container is stopped. Only pods with a readiness
	// gate KruisePodReady or InPlaceUpdateReady are drained.
	DrainSeconds int32
	// ImagesPresent says that the new images are on the node. Without it New refuses to change the image of a container
	// that is never restarted.
	ImagesPresent bool
	// Unready is stored in the record. It is nil if the pod was ready when the update was begun.
	Unready *v1beta1.InPlaceUpdateUnready
}

// Update is a set of changes of a pod, in an order in which they can be made in place.
type Update struct {
	Stages  []Stage
	Options Options
	// Changes are the changes of all stages, in no order.
	Changes Changes
}

// New returns the update that turns one pod into another one with the same containers. If that is not possible in
// place, the error is a [RefusedError] with all reasons.
//
// The stages are: resources; labels and annotations; then images, and restarts of containers whose environment refers
// to a changed label or annotation: native sidecars first, then the others in the order of OpenKruise's launch
// priorities.
func New(old, updated *corev1.PodTemplateSpec, options Options) (Update, error) {
	for _, spec := range []*corev1.PodSpec{&old.Spec, &updated.Spec} {
		if err := foreign.Spec(spec); err != nil {
			return Update{}, &RefusedError{Refusals: []Refusal{{Reason: ReasonInvalid, Why: err.Error()}}}
		}
	}
	old, updated = asStored(old), asStored(updated)
	d := &difference{old: old, updated: updated, options: options, rest: *updated.Spec.DeepCopy()}
	d.compare()
	if len(d.refusals) > 0 {
		return Update{}, &RefusedError{Refusals: d.refusals}
	}
	d.changes.Order = options.Order
	stages := d.changes.Stages(&updated.Spec)
	if len(stages) == 0 {
		return Update{}, &RefusedError{Refusals: []Refusal{{Reason: ReasonNoChange, Why: "nothing is different"}}}
	}
	return Update{Stages: stages, Options: options, Changes: d.changes}, nil
}

func asStored(pod *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			AsStored(&containers[i].Resources)
		}
	}
	return pod
}

// Template returns the part of a pod that an update may change.
func Template(pod *corev1.Pod) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	template.Labels, template.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	pod.Spec.DeepCopyInto(&template.Spec)
	return template
}

// Images returns the new images by container, which should be on the node before the update begins.
func (u *Update) Images() map[string]string {
	images := map[string]string{}
	for _, change := range u.Changes.Containers {
		if change.Image != "" {
			images[change.Container] = change.Image
		}
	}
	return images
}

// Stops returns the containers that are stopped and started again, in order.
func (u *Update) Stops(spec *corev1.PodSpec) []string {
	var names []string
	for i := range u.Stages {
		stage := &u.Stages[i]
		for _, change := range stage.Changes {
			if stage.Kind != StageResize || RestartsOnResize(spec, &change) {
				names = append(names, change.Container)
			}
		}
	}
	return names
}

// difference collects changes and refusals.
type difference struct {
	old, updated *corev1.PodTemplateSpec
	options      Options
	// rest is the new spec. Changes that can be made in place are reverted in it.
	rest     corev1.PodSpec
	changes  Changes
	refusals []Refusal
}

func (d *difference) refuse(field string, reason Reason, why, instead string) {
	d.refusals = append(d.refusals, Refusal{Field: field, Reason: reason, Why: why, Instead: instead})
}

func (d *difference) compare() {
	if d.old.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		d.refuse("", ReasonStaticPod, "it is a static pod, which kubelet reads from a file", "change its manifest on the node")
		return
	}
	d.containers("spec.initContainers", d.old.Spec.InitContainers, d.updated.Spec.InitContainers, &d.rest.InitContainers)
	d.containers("spec.containers", d.old.Spec.Containers, d.updated.Spec.Containers, &d.rest.Containers)
	for _, path := range differingPaths("spec", &d.old.Spec, &d.rest) {
		d.refuse(path, ReasonImmutableField, "cannot be changed in a running pod", recreate)
	}
	if slices.ContainsFunc(d.changes.Containers, func(c Change) bool { return c.Resources != nil }) {
		if from, to := qosClass(&d.old.Spec), qosClass(&d.updated.Spec); from != to {
			d.refuse("", ReasonQoSClass, fmt.Sprintf("the QoS class would change from %s to %s", from, to),
				"choose requests and limits that keep it, or "+recreate)
		}
	}
	d.metadata()
}

func sameNames(a, b []corev1.Container) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Container) bool { return a.Name == b.Name })
}

func (d *difference) containers(field string, old, updated []corev1.Container, rest *[]corev1.Container) {
	if !sameNames(old, updated) {
		d.refuse(field, ReasonImmutableField, "containers cannot be added, removed or put into another order in a running pod", recreate)
		*rest = old
		return
	}
	init := field == "spec.initContainers"
	for i := range old {
		was, is, left, at := &old[i], &updated[i], &(*rest)[i], fmt.Sprintf("%s[%d]", field, i)
		change := Change{Container: is.Name, Sidecar: init}
		left.Image = was.Image
		if was.Image != is.Image {
			change.Image = is.Image
			d.image(at+".image", is)
		}
		left.Resources.Requests, left.Resources.Limits = was.Resources.Requests, was.Resources.Limits
		if !sameResources(was.Resources, is.Resources) {
			change.Resources = &corev1.ResourceRequirements{Requests: is.Resources.Requests, Limits: is.Resources.Limits}
			d.resources(at+".resources", was.Resources, is.Resources)
		}
		if init && !isSidecar(was) && (change.Image != "" || change.Resources != nil) {
			d.refuse(at, ReasonInitContainer, fmt.Sprintf("init container %s runs once, before the others, and is not run again", is.Name), recreate)
		}
		if change.Image != "" || change.Resources != nil {
			d.changes.Containers = append(d.changes.Containers, change)
		}
	}
}

func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (d *difference) image(field string, is *corev1.Container) {
	if is.Image == "" {
		d.refuse(field, ReasonInvalid, "an image is required", "")
	}
	if policy := d.policy(is.Name); !survivesStop(policy) && !d.options.ImagesPresent {
		d.refuse(field, ReasonRestartPolicyNever, fmt.Sprintf("container %s has restartPolicy %s: kubelet stops it before it pulls the new image, "+
			"and when the pull fails does not start it again", is.Name, policy.Policy), "pull the image onto the node first, or "+recreate)
	}
}

func (d *difference) policy(container string) kubelet.RestartPolicy {
	return kubelet.RestartPolicyOf(&corev1.Pod{Spec: d.old.Spec}, container)
}

// survivesStop reports whether kubelet restarts a stopped container. Most stopped containers exit with code 0, or with
// the code of SIGTERM or SIGKILL.
func survivesStop(policy kubelet.RestartPolicy) bool {
	const sigkill, sigterm = 128 + 9, 128 + 15
	return policy.Restarts(0) && policy.Restarts(sigkill) && policy.Restarts(sigterm)
}

func sameResources(a, b corev1.ResourceRequirements) bool {
	return apiequality.Semantic.DeepEqual(a.Requests, b.Requests) && apiequality.Semantic.DeepEqual(a.Limits, b.Limits)
}

func (d *difference) resources(field string, was, is corev1.ResourceRequirements) {
	for _, list := range []struct {
		name    string
		was, is corev1.ResourceList
	}{{"requests", was.Requests, is.Requests}, {"limits", was.Limits, is.Limits}} {
		names := slices.Sorted(maps.Keys(list.was))
		for _, name := range slices.Sorted(maps.Keys(list.is)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			before, had := list.was[name]
			after, has := list.is[name]
			at := fmt.Sprintf("%s.%s.%s", field, list.name, name)
			switch {
			case had && !has:
				d.refuse(at, ReasonRemovedResource, "a request or limit cannot be removed from a running pod", recreate)
			case before.Cmp(after) == 0 && had:
			case name != corev1.ResourceCPU && name != corev1.ResourceMemory:
				d.refuse(at, ReasonResource, "only CPU and memory can be changed in a running pod", recreate)
			case after.Sign() < 0:
				d.refuse(at, ReasonInvalid, "must not be negative", "")
			}
		}
	}
	for name, request := range is.Requests {
		if limit, ok := is.Limits[name]; ok && limit.Cmp(request) < 0 {
			d.refuse(fmt.Sprintf("%s.requests.%s", field, name), ReasonInvalid,
				fmt.Sprintf("%s is more than the limit %s", request.String(), limit.String()), "change both")
		}
	}
}

// RestartsOnResize reports whether kubelet restarts the container for its new resources (resizePolicy RestartContainer).
func RestartsOnResize(spec *corev1.PodSpec, change *Change) bool {
	container := Find(spec, change.Container)
	if container == nil || change.Resources == nil {
		return false
	}
	for _, policy := range container.ResizePolicy {
		if policy.RestartPolicy != corev1.RestartContainer {
			continue
		}
		for _, lists := range [][2]corev1.ResourceList{
			{container.Resources.Requests, change.Resources.Requests}, {container.Resources.Limits, change.Resources.Limits},
		} {
			was, is := lists[0][policy.ResourceName], lists[1][policy.ResourceName]
			if was.Cmp(is) != 0 {
				return true
			}
		}
	}
	return false
}

// Find returns the container or init container with this name, or nil.
func Find(spec *corev1.PodSpec, name string) *corev1.Container { return kubelet.Container(spec, name) }
