package podprobe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/internal/result"
)

// Reasons of the conditions that Refit sets on pods.
const (
	ReasonProbeSucceeded = "ProbeSucceeded"
	ReasonProbeFailed    = "ProbeFailed"
	ReasonProbeUnknown   = "ProbeUnknown"
)

// States holds the results of one pod's probes by full name.
type States map[string]v1alpha1.ContainerProbeState

// StatesOf returns the results of a pod in the status of its node, or nil if there are none.
func StatesOf(pod *corev1.Pod, status v1alpha1.NodePodProbeStatus) States {
	for _, s := range status.PodProbeStatuses {
		if s.UID != string(pod.UID) {
			continue
		}
		states := make(States, len(s.ProbeStates))
		for _, state := range s.ProbeStates {
			states[state.Name] = state
		}
		return states
	}
	return nil
}

// StatesOfConditions returns the results of a pod on a virtual node, from the conditions that the prober there has
// written. A probe without a condition has no result yet and is left out.
func StatesOfConditions(pod *corev1.Pod, markers []Marker) States {
	states := States{}
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			condition := kubelet.ConditionIn(pod.Status.Conditions, corev1.PodConditionType(p.PodConditionType))
			if p.PodConditionType == "" || condition == nil {
				continue
			}
			state := v1alpha1.ContainerProbeState{Name: FullName(m.Name, p.Name), State: v1alpha1.ProbeFailed, Message: condition.Message}
			switch condition.Status {
			case corev1.ConditionTrue:
				state.State = v1alpha1.ProbeSucceeded
			case corev1.ConditionUnknown:
				state.State = v1alpha1.ProbeUnknown
			}
			states[state.Name] = state
		}
	}
	return states
}

// Fields are the labels, annotations and conditions that a pod gets from its probe results.
type Fields struct {
	Labels, Annotations map[string]string
	Conditions          []corev1.PodCondition
}

// Empty reports whether there are no fields.
func (f Fields) Empty() bool { return len(f.Labels)+len(f.Annotations)+len(f.Conditions) == 0 }

// Desired computes the fields of a pod from the results of its probes. If two markers set the same key or condition to
// different values, the first wins, by the name of the marker and the order of its probes.
//
//   - A condition is True if the probe has succeeded and False otherwise, as in OpenKruise. For Unknown, the initial
//     state for a new container instance, it has a separate reason.
//   - Labels and annotations come from the marker's policy for the state. The state Unknown has none.
//   - A probe without a result changes nothing: the fields that it has set stay, for example while a daemon is replaced.
//   - A probe that NodeSpec leaves out sets nothing, even if it still has a result: its container or port is missing,
//     or the pod has too many probes. Desired does not read a stored spec for this, because the spec may be older than
//     the markers.
func Desired(pod *corev1.Pod, markers []Marker, states States, now time.Time) Fields {
	probes := resolvable(pod, markers)
	return desiredBy(probes[:min(len(probes), v1alpha1.MaxProbesOfPod)], pod, states, now)
}

// desiredBy computes the fields of a pod that result from these probes.
func desiredBy(probes []probeOfPod, pod *corev1.Pod, states States, now time.Time) Fields {
	d := desired{pod: pod, owned: managedfields.OwnedBy(pod), left: readOverridden(pod.Annotations[v1alpha1.AnnotationOverridden]), now: now, Fields: Fields{Labels: map[string]string{}, Annotations: map[string]string{}}}
	var withoutResult []probeOfPod
	for _, p := range probes {
		if state, known := states[p.fullName()]; known && state.State != "" {
			d.add(p.PodContainerProbe, state)
		} else {
			withoutResult = append(withoutResult, p)
		}
	}
	for _, p := range withoutResult {
		d.keep(p.PodContainerProbe)
	}
	return d.Fields
}

// desired collects the fields of one pod.
type desired struct {
	Fields
	pod   *corev1.Pod
	owned managedfields.Owned
	left  overridden // fields that other writers have changed
	now   time.Time
}

func (d *desired) add(p v1alpha1.PodContainerProbe, state v1alpha1.ContainerProbeState) {
	if p.PodConditionType != "" && kubelet.ConditionIn(d.Conditions, corev1.PodConditionType(p.PodConditionType)) == nil {
		d.Conditions = append(d.Conditions, d.condition(p.PodConditionType, state))
	}
	for _, policy := range p.MarkerPolicy {
		if policy.State == state.State {
			addMissing(d.Labels, policy.Labels)
			addMissing(d.Annotations, policy.Annotations)
		}
	}
}

func (d *desired) condition(kind string, state v1alpha1.ContainerProbeState) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: corev1.PodConditionType(kind), Status: corev1.ConditionFalse, Reason: ReasonProbeFailed,
		Message: foreign.Cut(state.Message, result.MaxMessage), LastProbeTime: state.LastProbeTime, LastTransitionTime: state.LastTransitionTime,
	}
	switch state.State {
	case v1alpha1.ProbeSucceeded:
		c.Status, c.Reason = corev1.ConditionTrue, ReasonProbeSucceeded
	case v1alpha1.ProbeFailed:
	default:
		c.Reason = ReasonProbeUnknown
		if c.Message == "" {
			c.Message = "the current instance of the container has no result yet"
		}
	}
	if before := kubelet.ConditionIn(d.pod.Status.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
		c.LastTransitionTime = before.LastTransitionTime
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(d.now.Truncate(time.Second))
	}
	return c
}

// keep copies the fields that the probe may have set before, including those that other writers have changed since.
// These stay recorded, because the next result may be the previous one again.
func (d *desired) keep(p v1alpha1.PodContainerProbe) {
	kind := corev1.PodConditionType(p.PodConditionType)
	if live := kubelet.ConditionIn(d.pod.Status.Conditions, kind); live != nil && d.owned.Conditions[string(kind)] && kubelet.ConditionIn(d.Conditions, kind) == nil {
		d.Conditions = append(d.Conditions, *live)
	}
	for _, policy := range p.MarkerPolicy {
		addMissing(d.Labels, present(policy.Labels, d.pod.Labels, d.owned.Labels, d.left.Labels))
		addMissing(d.Annotations, present(policy.Annotations, d.pod.Annotations, d.owned.Annotations, d.left.Annotations))
	}
}

// present returns the keys of the policy that Refit has set and that the pod has with the same value, and the keys that
// are left to other writers.
func present(policy, existing map[string]string, owned map[string]bool, left map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range policy {
		if live, ok := existing[key]; ok && owned[key] && live == value || left[key] == hash(value) {
			found[key] = value
		}
	}
	return found
}

func addMissing(to, from map[string]string) {
	for key, value := range from {
		if _, taken := to[key]; !taken {
			to[key] = value
		}
	}
}
