package podprobe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/result"
)

// Reasons of the conditions that Refit puts on pods.
const (
	ReasonProbeSucceeded = "ProbeSucceeded"
	ReasonProbeFailed    = "ProbeFailed"
	ReasonProbeUnknown   = "ProbeUnknown"
)

// States are the results of one pod's probes by full name.
type States map[string]v1alpha1.ContainerProbeState

// StatesOf finds the results of a pod in the status of its node; nil when there are none.
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

// StatesOfConditions reads the results of a pod on a virtual node from the conditions that whoever probes there has
// written. The zero state is left out: nothing has been said yet.
func StatesOfConditions(pod *corev1.Pod, markers []Marker) States {
	states := States{}
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			condition := findCondition(pod.Status.Conditions, corev1.PodConditionType(p.PodConditionType))
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

// Marks are what a pod carries for its probes.
type Marks struct {
	Labels, Annotations map[string]string
	Conditions          []corev1.PodCondition
}

// Empty reports whether nothing is to be carried.
func (m Marks) Empty() bool { return len(m.Labels)+len(m.Annotations)+len(m.Conditions) == 0 }

// Want is what a pod is to carry by the results of its probes. Where two markers want different things of one key or
// condition, the first counts, by name of the marker and order of its probes.
//
//   - A condition is True when the probe has succeeded and False otherwise, as with OpenKruise. Unknown, which is what a
//     new instance of a container begins with, has a reason of its own.
//   - Labels and annotations are those of the policy of the state. In state Unknown there are none.
//   - A probe without a result says nothing: what it has put on the pod stays, as when a daemon is replaced.
func Want(pod *corev1.Pod, markers []Marker, states States, now time.Time) Marks {
	w := wish{pod: pod, owned: OwnedBy(pod), now: now, Marks: Marks{Labels: map[string]string{}, Annotations: map[string]string{}}}
	var silent []v1alpha1.PodContainerProbe
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			if state, said := states[FullName(m.Name, p.Name)]; said && state.State != "" {
				w.add(p, state)
			} else {
				silent = append(silent, p)
			}
		}
	}
	for _, p := range silent {
		w.keep(p)
	}
	return w.Marks
}

type wish struct {
	Marks
	pod   *corev1.Pod
	owned Owned
	now   time.Time
}

func (w *wish) add(p v1alpha1.PodContainerProbe, state v1alpha1.ContainerProbeState) {
	if p.PodConditionType != "" && findCondition(w.Conditions, corev1.PodConditionType(p.PodConditionType)) == nil {
		w.Conditions = append(w.Conditions, w.condition(p.PodConditionType, state))
	}
	for _, policy := range p.MarkerPolicy {
		if policy.State == state.State {
			addMissing(w.Labels, policy.Labels)
			addMissing(w.Annotations, policy.Annotations)
		}
	}
}

func (w *wish) condition(kind string, state v1alpha1.ContainerProbeState) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: corev1.PodConditionType(kind), Status: corev1.ConditionFalse, Reason: ReasonProbeFailed,
		Message: result.Cut(state.Message, result.MaxMessage), LastProbeTime: state.LastProbeTime, LastTransitionTime: state.LastTransitionTime,
	}
	switch state.State {
	case v1alpha1.ProbeSucceeded:
		c.Status, c.Reason = corev1.ConditionTrue, ReasonProbeSucceeded
	case v1alpha1.ProbeFailed:
	default:
		c.Reason = ReasonProbeUnknown
		if c.Message == "" {
			c.Message = "nothing is known yet of the container's present instance"
		}
	}
	if before := findCondition(w.pod.Status.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
		c.LastTransitionTime = before.LastTransitionTime
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(w.now.Truncate(time.Second))
	}
	return c
}

// keep leaves what the probe may have put on the pod as it is.
func (w *wish) keep(p v1alpha1.PodContainerProbe) {
	kind := corev1.PodConditionType(p.PodConditionType)
	if there := findCondition(w.pod.Status.Conditions, kind); there != nil && w.owned.Conditions[string(kind)] && findCondition(w.Conditions, kind) == nil {
		w.Conditions = append(w.Conditions, *there)
	}
	for _, policy := range p.MarkerPolicy {
		addMissing(w.Labels, present(policy.Labels, w.pod.Labels, w.owned.Labels))
		addMissing(w.Annotations, present(policy.Annotations, w.pod.Annotations, w.owned.Annotations))
	}
}

// present are those of the policy's marks that the pod carries and Refit has put there.
func present(policy, there map[string]string, owned map[string]bool) map[string]string {
	found := map[string]string{}
	for key, value := range policy {
		if live, ok := there[key]; ok && owned[key] && live == value {
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

func findCondition(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
