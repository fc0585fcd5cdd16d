// Package sidecarsetcheck judges a rollout of a SidecarSet by all versions of its pods that the API server has stored: whether
// more pods were unavailable than may be, whether a pod was updated twice, and whether anything else was touched. It
// does no I/O.
package sidecarsetcheck

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/api/v1beta1"
)

// Check follows the pods of a SidecarSet with one container.
type Check struct {
	SidecarSet     string
	Container      string
	MaxUnavailable int

	target   string // the newest image
	allowed  []string
	pods     map[types.UID]*pod
	findings []string
	begun    int
}

// Updates is how many begun updates have been judged: none would be none that is wrong.
func (c *Check) Updates() int { return c.begun }

// pod as it was seen last.
type pod struct {
	seen     *corev1.Pod
	inFlight bool   // its update has been begun and has not taken effect
	replaced string // container ID of the sidecar when the update was begun
	updates  map[string]int
	restarts int32 // that updates account for
}

// Target says that the SidecarSet has another image from now on. Pods may be updated to it once each.
func (c *Check) Target(image string) {
	c.target, c.allowed = image, append(c.allowed, image)
	for _, p := range c.pods {
		p.updates = map[string]int{}
	}
}

// Findings are what was wrong.
func (c *Check) Findings() []string { return c.findings }

// See takes in the next version of a pod, in the order in which they were stored.
func (c *Check) See(kind watch.EventType, now *corev1.Pod) {
	if c.pods == nil {
		c.pods = map[types.UID]*pod{}
	}
	if kind == watch.Deleted {
		delete(c.pods, now.UID)
		return
	}
	c.injection(now)
	p := c.pods[now.UID]
	if p == nil {
		p = &pod{updates: map[string]int{}, seen: now}
		c.pods[now.UID] = p
	}
	was := p.seen
	p.seen = now
	if before, after := image(was, c.Container), image(now, c.Container); before != after {
		c.update(p, was, after)
	}
	if status := statusOf(now, c.Container); p.inFlight && ready(now) && status != nil && status.ContainerID != p.replaced {
		p.inFlight = false
	}
	c.restarts(p, was, now)
}

// update judges the begin of an update.
func (c *Check) update(p *pod, was *corev1.Pod, to string) {
	if !slices.Contains(c.allowed, to) {
		c.find(p, "has the image %s, which the SidecarSet never had", to)
	}
	p.restarts++
	c.begun++
	if p.updates[to]++; p.updates[to] > 1 {
		c.find(p, "was updated to %s %d times", to, p.updates[to])
	}
	costs := ready(was) && !p.inFlight
	p.inFlight = true
	if status := statusOf(was, c.Container); status != nil {
		p.replaced = status.ContainerID
	}
	if !costs {
		return
	}
	unavailable, workload, others := 0, owner(p.seen), 0
	for _, other := range c.pods {
		if other.inFlight && other.seen.DeletionTimestamp == nil {
			unavailable++
		}
		if other != p && workload != "" && owner(other.seen) == workload && ready(other.seen) && !other.inFlight && other.seen.DeletionTimestamp == nil {
			others++
		}
	}
	if unavailable > c.MaxUnavailable {
		c.find(p, "was updated while %d others were in an update; at most %d may be", unavailable-1, c.MaxUnavailable)
	}
	if workload != "" && others == 0 && c.siblings(p) > 0 {
		c.find(p, "was the last of its workload that was available")
	}
}

func (c *Check) siblings(p *pod) int {
	n := 0
	for _, other := range c.pods {
		if other != p && owner(other.seen) == owner(p.seen) {
			n++
		}
	}
	return n
}

// injection: a pod has the container and says so, or neither.
func (c *Check) injection(now *corev1.Pod) {
	says := slices.Contains(strings.Split(now.Annotations[v1beta1.AnnotationSidecarSetList], ","), c.SidecarSet)
	has := slices.ContainsFunc(now.Spec.Containers, func(container corev1.Container) bool {
		return container.Name == c.Container && v1beta1.IsInjected(&container)
	})
	if says != has {
		c.findings = append(c.findings, fmt.Sprintf("pod %s: has the sidecar: %t, says so: %t", now.Name, has, says))
	}
}

// restarts: an update restarts the sidecar once, and no other container.
func (c *Check) restarts(p *pod, was, now *corev1.Pod) {
	for _, status := range now.Status.ContainerStatuses {
		before := statusOf(was, status.Name)
		switch {
		case before == nil || before.ContainerID == "" || status.ContainerID == "":
		case status.Name != c.Container && before.ContainerID != status.ContainerID:
			c.find(p, "container %s was restarted", status.Name)
		case status.Name == c.Container && status.RestartCount > p.restarts && status.RestartCount > before.RestartCount:
			c.find(p, "the sidecar was restarted %d times for %d updates", status.RestartCount, p.restarts)
		}
	}
}

func (c *Check) find(p *pod, format string, args ...any) {
	c.findings = append(c.findings, fmt.Sprintf("pod %s: %s", p.seen.Name, fmt.Sprintf(format, args...)))
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

func owner(pod *corev1.Pod) types.UID {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.UID
	}
	return ""
}
