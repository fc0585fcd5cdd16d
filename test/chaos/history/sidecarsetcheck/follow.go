// Package sidecarsetcheck judges rollouts of SidecarSets (I15) by all versions of their pods that the API server has stored:
// whether more pods were unavailable than may be, whether a pod was updated twice, whether an injection was left half done,
// whether anything else was touched, and whether the rollout ended.
package sidecarsetcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// settled is how long a pod must have been unavailable, for other reasons than an update, for the manager to know of it.
const settled = 5 * time.Second

// Version is a pod as it was stored.
type Version struct {
	Pod *corev1.Pod
	// Gone says that the pod was removed with this version.
	Gone bool
	At   time.Time
	Line entry.Line
}

// Finding is something that a rollout must not do.
type Finding struct {
	Pod, What string
	Proof     []entry.Line
}

func (f Finding) String() string { return "pod " + f.Pod + ": " + f.What }

// Follower follows the pods of a SidecarSet with one container.
type Follower struct {
	SidecarSet     string
	Container      string
	MaxUnavailable int
	// Records say which versions may be missing, and what else may have ended containers. Nil: nothing is missing and
	// nothing else has ended any.
	Records *model.Model

	target   string // the newest image
	changed  time.Time
	proof    entry.Line // of the newest image
	allowed  []string
	pods     map[types.UID]*pod
	findings []Finding
	begun    int
}

// pod as it was seen last.
type pod struct {
	Version
	inFlight bool       // its update has been begun and has not taken effect
	begun    entry.Line // of that update
	since    time.Time  // of that update
	free     time.Time  // when it was begun, if the pod was not available anyway
	replaced string     // container ID of the sidecar when the update was begun
	updates  map[string]int
	restarts int32     // that updates account for
	left     time.Time // when it was available the last time, except for an update
}

// Updates is how many begun updates have been judged: none would be none that is wrong.
func (f *Follower) Updates() int { return f.begun }

// Findings are what was wrong.
func (f *Follower) Findings() []Finding { return f.findings }

// Target says that the SidecarSet has another image from now on. Pods may be updated to it once each.
func (f *Follower) Target(image string, at time.Time, proof entry.Line) {
	if image == f.target {
		return
	}
	f.target, f.changed, f.proof = image, at, proof
	f.Allow(image)
	for _, p := range f.pods {
		p.updates = map[string]int{}
	}
}

// Allow says that the SidecarSet has this image at some time.
func (f *Follower) Allow(image string) { f.allowed = append(f.allowed, image) }

// See takes in the next version of a pod, in the order in which they were stored.
func (f *Follower) See(v Version) {
	if f.pods == nil {
		f.pods = map[types.UID]*pod{}
	}
	p := f.pods[v.Pod.UID]
	if p == nil {
		if v.Gone {
			return
		}
		p = &pod{updates: map[string]int{}, Version: v}
		f.pods[v.Pod.UID] = p
	}
	was := p.Version
	p.Version = v
	switch {
	case available(v.Pod):
		p.left = time.Time{}
	case available(was.Pod) && p.left.IsZero():
		p.left = v.At
	}
	if v.Gone {
		if available(was.Pod) {
			p.left = v.At
		}
		p.inFlight = false
		return
	}
	f.injection(p)
	if after := image(v.Pod, f.Container); image(was.Pod, f.Container) != after && after != "" {
		f.update(p, was, after)
	}
	updating := p.inFlight
	if status := statusOf(v.Pod, f.Container); p.inFlight && ready(v.Pod) && status != nil {
		current := status.Image == image(v.Pod, f.Container)
		takenBack := v.Pod.Status.ObservedGeneration == v.Pod.Generation && current // before kubelet had done anything
		// The next container may be the one that kubelet was creating when the update was begun.
		replaced := status.ContainerID != p.replaced && (current || status.Image == "")
		p.inFlight = !replaced && !takenBack
	}
	f.restarts(p, was, updating)
}

// update judges the begin of an update.
func (f *Follower) update(p *pod, was Version, to string) {
	if !slices.Contains(f.allowed, to) {
		f.find(p, "has the image %s, which the SidecarSet never had", to)
	}
	p.restarts++
	f.begun++
	if p.updates[to]++; p.updates[to] > 1 {
		f.find(p, "was updated to %s %d times", to, p.updates[to])
	}
	costs := available(was.Pod) && !p.inFlight
	switch {
	case costs:
		p.free = time.Time{}
	case !p.inFlight:
		p.free = p.At
	}
	p.inFlight, p.begun, p.since = true, p.Line, p.At
	if status := statusOf(was.Pod, f.Container); status != nil {
		p.replaced = status.ContainerID
		if f.otherwiseEnded(p, status, was.At) {
			p.restarts++ // kubelet also starts the image of before again, if it does not know of the update yet
		}
	}
	if costs && !f.doubt(p, was.At) {
		f.budget(p)
		f.last(p)
	}
}

// budget checks that with this update no more pods are in one than may be. One that was not available anyway may be updated
// along with the others: from the next choice on it counts.
func (f *Follower) budget(p *pod) {
	var proof []entry.Line
	for _, other := range f.pods {
		along := !other.free.IsZero() && p.At.Sub(other.free) < settled
		if other != p && other.inFlight && !along && other.Pod.DeletionTimestamp == nil && !f.doubtAt(other, other.At, p.At) {
			proof = append(proof, other.begun)
		}
	}
	if len(proof)+1 > f.MaxUnavailable {
		f.findBy(p, proof, "was updated while %d others were in an update; at most %d may be", len(proof), f.MaxUnavailable)
	}
}

// last checks that another pod of the workload is available. Where one was until lately, the manager may not have known
// better.
func (f *Follower) last(p *pod) {
	workload := owner(p.Pod)
	if workload == "" {
		return
	}
	var proof []entry.Line
	for _, other := range f.pods {
		switch {
		case other == p || owner(other.Pod) != workload:
		case other.Gone && !other.lately(p.At):
		case !other.inFlight && (!other.Gone && available(other.Pod) || other.lately(p.At)), f.doubtAt(other, other.At, p.At):
			return
		default:
			proof = append(proof, other.Line)
		}
	}
	if len(proof) > 0 { // the only pod of a workload is updated too
		f.findBy(p, proof, "was the last of its workload that was available")
	}
}

func (p *pod) lately(now time.Time) bool { return !p.left.IsZero() && now.Sub(p.left) < settled }

// injection: a pod has the container and says so, or neither.
func (f *Follower) injection(p *pod) {
	says := slices.Contains(strings.Split(p.Pod.Annotations[v1beta1.AnnotationSidecarSetList], ","), f.SidecarSet)
	has := f.injected(p.Pod)
	if says != has {
		f.find(p, "has the sidecar: %t, says so: %t", has, says)
	}
}

func (f *Follower) injected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		return container.Name == f.Container && v1beta1.IsInjected(&container)
	})
}

// restarts: an update restarts the sidecar once, and no other container.
func (f *Follower) restarts(p *pod, was Version, updating bool) {
	for _, status := range p.Pod.Status.ContainerStatuses {
		before := statusOf(was.Pod, status.Name)
		switch {
		case before == nil || before.ContainerID == "" || status.ContainerID == "" || before.ContainerID == status.ContainerID:
		case status.Name != f.Container:
			if !f.otherwiseEnded(p, before, was.At) && !f.ordered(p, before) {
				f.find(p, "container %s was restarted", status.Name)
			}
		case status.RestartCount > p.restarts && (f.doubt(p, was.At) || f.otherwiseEnded(p, before, was.At) || updating && f.brokenOff(p)):
			p.restarts = status.RestartCount
		case status.RestartCount > p.restarts && status.RestartCount > before.RestartCount:
			f.find(p, "the sidecar was restarted %d times for %d updates", status.RestartCount, p.restarts)
		}
	}
}

func (f *Follower) find(p *pod, format string, args ...any) { f.findBy(p, nil, format, args...) }

func (f *Follower) findBy(p *pod, proof []entry.Line, format string, args ...any) {
	f.findings = append(f.findings, Finding{Pod: p.Pod.Name, What: fmt.Sprintf(format, args...), Proof: append(proof, p.Line)})
}

func image(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == container {
			return pod.Spec.Containers[i].Image
		}
	}
	return ""
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func available(pod *corev1.Pod) bool { return ready(pod) && pod.DeletionTimestamp == nil }

func owner(pod *corev1.Pod) types.UID {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.UID
	}
	return ""
}
