package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Change is the change of one container.
type Change struct {
	Container string
	// Sidecar says that the container is a native sidecar: an init container with restartPolicy Always (KEP-753).
	Sidecar bool
	// Image is the new image, or "" if it does not change.
	Image string
	// Resources are the new requests and limits of CPU and memory, including unchanged ones; nil if none change.
	Resources *corev1.ResourceRequirements
	// Metadata are the changed labels and annotations that the container's environment refers to.
	Metadata v1beta1.InPlaceUpdateMetadata
}

// ChangesMetadata reports whether Metadata has any labels or annotations.
func (c *Change) ChangesMetadata() bool {
	return len(c.Metadata.Labels)+len(c.Metadata.Annotations) > 0
}

// StageKind says what a stage does to a pod.
type StageKind string

// The kinds, in the order in which they appear in a plan.
const (
	// StageResize changes CPU and memory of all containers at once.
	StageResize StageKind = "Resize"
	// StageMetadata changes labels and annotations to which no container's environment refers.
	StageMetadata StageKind = "Metadata"
	// StageImage changes images, so that kubelet replaces the containers, and the metadata to which their environment
	// refers. Containers of the stage whose image does not change are restarted.
	StageImage StageKind = "Image"
	// StageRestart changes metadata to which the environment of containers refers, and restarts these containers.
	StageRestart StageKind = "Restart"
)

// Stage is a set of changes that are made together. It has to be complete before the next stage.
type Stage struct {
	Kind    StageKind
	Changes []Change
	// Labels and Annotations are set by StageMetadata; nil removes a key.
	Labels, Annotations map[string]*string
}

// Containers returns the names of the containers that change.
func (s *Stage) Containers() []string {
	names := make([]string, len(s.Changes))
	for i := range s.Changes {
		names[i] = s.Changes[i].Container
	}
	return names
}

// Without returns the stage without held changes, and without changes that share metadata with them, because metadata
// takes effect for all at once. It returns nil if nothing is left. Stages of resources and of metadata alone are never
// held.
func (s *Stage) Without(held func(*Change) bool) *Stage {
	if s.Kind == StageResize || s.Kind == StageMetadata {
		return s
	}
	out := make([]bool, len(s.Changes))
	for i := range s.Changes {
		out[i] = held(&s.Changes[i])
	}
	grow(s.Changes, out)
	var free []Change
	for i, change := range s.Changes {
		if !out[i] {
			free = append(free, change)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return restarting(free)
}

// restarting returns the stage for changes of images and environments.
func restarting(changes []Change) *Stage {
	stage := &Stage{Kind: StageRestart, Changes: changes}
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Image != "" }) {
		stage.Kind = StageImage
	}
	return stage
}

// grow adds to the taken changes those that share changed metadata with them.
func grow(changes []Change, taken []bool) {
	for grown := true; grown; {
		grown = false
		for i := range changes {
			if !taken[i] && sharesMetadata(&changes[i], changes, taken) {
				taken[i], grown = true, true
			}
		}
	}
}

// Changes is what remains to be written to a pod.
type Changes struct {
	// Containers are in spec order, init containers first.
	Containers []Change
	// Labels and Annotations are those to which no container's environment refers; nil removes a key.
	Labels, Annotations map[string]*string
	// Order has the meaning of Options.Order.
	Order [][]string
}

// Stages returns the changes in order: resources first, because if a container gets image and resources at once, its
// new instance still has the pod's old limits (kubernetes/kubernetes#127356).
func (c *Changes) Stages(spec *corev1.PodSpec) []Stage {
	var all []Stage
	resize, rest := Stage{Kind: StageResize}, []Change{}
	for _, change := range c.Containers {
		if change.Resources != nil {
			resize.Changes = append(resize.Changes, Change{Container: change.Container, Sidecar: change.Sidecar, Resources: change.Resources})
		}
		if change.Image != "" || change.ChangesMetadata() {
			change.Resources = nil
			rest = append(rest, change)
		}
	}
	if len(resize.Changes) > 0 {
		all = append(all, resize)
	}
	if len(c.Labels)+len(c.Annotations) > 0 {
		all = append(all, Stage{Kind: StageMetadata, Labels: c.Labels, Annotations: c.Annotations})
	}
	for len(rest) > 0 {
		var batch []Change
		batch, rest = firstBatch(spec, c.Order, rest)
		all = append(all, *restarting(batch))
	}
	return all
}

// firstBatch returns the changes that come first in the launch order, together with the changes of later containers
// that share changed metadata with them, because metadata takes effect for all at once.
func firstBatch(spec *corev1.PodSpec, order [][]string, changes []Change) (batch, rest []Change) {
	rank := rankBy(spec, order, changes)
	first := rank(&changes[0])
	for i := range changes {
		first = min(first, rank(&changes[i]))
	}
	taken := make([]bool, len(changes))
	for i := range changes {
		taken[i] = rank(&changes[i]) == first
	}
	grow(changes, taken)
	for i, change := range changes {
		if taken[i] {
			batch = append(batch, change)
		} else {
			rest = append(rest, change)
		}
	}
	return batch, rest
}

func sharesMetadata(change *Change, changes []Change, taken []bool) bool {
	for i := range changes {
		if taken[i] && (sharesKey(change.Metadata.Labels, changes[i].Metadata.Labels) ||
			sharesKey(change.Metadata.Annotations, changes[i].Metadata.Annotations)) {
			return true
		}
	}
	return false
}

func sharesKey(a, b map[string]string) bool {
	for key := range a {
		if _, ok := b[key]; ok {
			return true
		}
	}
	return false
}

// rankBy returns a function that ranks containers by the given order, or else by the pod: native sidecars first, then
// containers with the highest launch priority of the changes together with those that have none, then the others by
// priority.
func rankBy(spec *corev1.PodSpec, order [][]string, changes []Change) func(*Change) int64 {
	if len(order) > 0 {
		return func(c *Change) int64 {
			return int64(max(0, slices.IndexFunc(order, func(names []string) bool { return slices.Contains(names, c.Container) })))
		}
	}
	priorities := map[string]int64{}
	highest := int64(math.MinInt32)
	for i := range spec.Containers {
		if priority, ok := LaunchPriority(&spec.Containers[i]); ok {
			priorities[spec.Containers[i].Name] = priority
		}
	}
	for i := range changes {
		if priority, ok := priorities[changes[i].Container]; ok {
			highest = max(highest, priority)
		}
	}
	return func(c *Change) int64 {
		priority, ok := priorities[c.Container]
		switch {
		case c.Sidecar:
			return math.MinInt64
		case !ok:
			return -highest
		default:
			return -priority
		}
	}
}

// LaunchPriority returns the priority that OpenKruise's webhook has injected into a container, and false if there is
// none. Containers with a higher priority start before the others.
func LaunchPriority(container *corev1.Container) (int64, bool) {
	for _, env := range container.Env {
		if env.Name != v1beta1.EnvContainerBarrier || env.ValueFrom == nil || env.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		text, ok := strings.CutPrefix(env.ValueFrom.ConfigMapKeyRef.Key, v1beta1.ContainerBarrierKeyText)
		priority, err := strconv.ParseInt(text, 10, 32)
		return priority, ok && err == nil
	}
	return 0, false
}
