package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/kubelet"
)

// gated reports whether the update makes the pod not ready. That of sidecars does not: the gate belongs to the owner of the
// pod, who would set its condition to True again.
func (v *view) gated() bool { return v.record.SidecarSet == "" && gate.Of(v.pod) != "" }

// enforced reports whether the node's daemon restarts containers whose environment is out of date: it does while this gate is closed.
func (v *view) enforced() bool {
	return v.gated() && gate.Of(v.pod) == v1beta1.ReadinessGateInPlaceUpdateReady
}

// drained is nil once the pod has been out of its Services for long enough, or cannot be taken out of them.
func (v *view) drained() *Decision {
	if !v.gated() {
		return nil
	}
	condition := gate.Closed(v.pod)
	if condition == nil {
		return v.drain()
	}
	seconds := v.record.Extension().DrainSeconds
	until := condition.LastTransitionTime.Add(time.Duration(seconds) * time.Second)
	if seconds > 0 && v.now.Before(until) {
		d := wait("", "draining until %s", until.UTC().Format(time.RFC3339))
		d.Again = until
		return d
	}
	return nil
}

// undrained reports whether the pod is in its Services although its gate is closed: kubelet has written a status that it
// computed before it saw the gate, and will only correct it with its next sync.
func (v *view) undrained() bool {
	return v.gated() && !v.record.State.UpdateTimestamp.IsZero() && gate.Closed(v.pod) != nil && kubelet.Ready(v.pod)
}

// drain writes Ready as well, so that the pod leaves its Services without waiting for kubelet. A sync of the pod would delay what is
// written next; only if the pod is to drain for a while, kubelet is made to sync it, so that Ready stays False meanwhile.
func (v *view) drain() *Decision {
	condition, err := gate.Close(v.pod)
	if err != nil {
		d := blocked("", BlockedMalformed, "the pod cannot be taken out of its Services: %s", err)
		d.Final = true
		return d
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: kubelet.ReasonReadinessGatesNotReady}
	ready.Message = kubelet.GateMessage(condition.Type)
	if v.record.Extension().DrainSeconds > 0 {
		ready.Message = kubelet.DrainMessage(condition.Type)
	}
	return step(v.conditions(StepDrain, "take the pod out of its Services", nil, condition, ready))
}

// open puts the pod back into its Services. It writes Ready as well if nothing else is in its way, so that this does not wait for
// kubelet, which takes a second to say the same; and then the record, since a change of the pod's metadata has kubelet sync the
// pod and learn of the gate. Otherwise Ready is kubelet's to write.
func (v *view) open() *Step {
	const message = "put the pod back into its Services"
	conditions := gate.Open(v.pod)
	if v.otherwiseReady() {
		return v.conditions(StepMarkReady, message, v.record.Opened(v.now), append(conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})...)
	}
	return v.conditions(StepMarkReady, message, nil, conditions...)
}

// readyLate reports whether kubelet says of everything but the pod itself that it is ready, once for each update: kubelet
// computes Ready from the conditions that it knew when it last synced the pod, and if the gate was opened before the
// containers were ready that may be a second or more ago.
func (v *view) readyLate() bool {
	return v.record.Opened(v.now) != nil && v.record.Extension().Opened == nil && v.otherwiseReady() && !kubelet.Ready(v.pod)
}

// otherwiseReady reports whether the pod is ready once the update's gates are open, by kubelet's rule: its containers and other gates are.
func (v *view) otherwiseReady() bool {
	opened := v.pod.Status.DeepCopy()
	for _, condition := range gate.Open(v.pod) {
		if was := kubelet.Condition(opened, condition.Type); was != nil {
			was.Status = condition.Status
		} else {
			opened.Conditions = append(opened.Conditions, condition)
		}
	}
	isTrue := func(kind corev1.PodConditionType) bool {
		c := kubelet.Condition(opened, kind)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	shut := func(gate corev1.PodReadinessGate) bool { return !isTrue(gate.ConditionType) }
	notReady := func(status corev1.ContainerStatus) bool { return !status.Ready }
	return isTrue(corev1.ContainersReady) && !slices.ContainsFunc(v.pod.Spec.ReadinessGates, shut) && !slices.ContainsFunc(opened.ContainerStatuses, notReady)
}
