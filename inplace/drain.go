package inplace

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// gated reports whether the update makes the pod not ready. An update of sidecars does not: the readiness gate belongs
// to the owner of the pod, which would set its condition to True again.
func (v *view) gated() bool { return v.record.SidecarSet == "" && gate.Of(v.pod) != "" }

// enforced reports whether the node's daemon restarts containers whose environment is out of date. It does so while
// this readiness gate is closed.
func (v *view) enforced() bool {
	return v.gated() && gate.Of(v.pod) == v1beta1.ReadinessGateInPlaceUpdateReady
}

// awaitDrain returns nil if the pod has been not ready for long enough, or cannot be made not ready. Otherwise it
// returns what to do or wait for.
func (v *view) awaitDrain() *Decision {
	if !v.gated() {
		return nil
	}
	condition := gate.Closed(v.pod)
	if condition == nil {
		return v.drain("take the pod out of its Services")
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

// readyDuringDrain reports whether the pod is ready although its gate is closed: kubelet has written a status that it
// computed before it saw the gate, and will correct it only with its next sync.
func (v *view) readyDuringDrain() bool {
	return v.gated() && !v.record.State.UpdateTimestamp.IsZero() && gate.Closed(v.pod) != nil && kubelet.Ready(v.pod)
}

// drain also sets Ready to False, so that the pod leaves its Services without waiting for kubelet. A sync of the pod
// would delay the next write. It makes kubelet sync the pod only if the pod must drain for a while, so that Ready stays
// False meanwhile.
func (v *view) drain(message string) *Decision {
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
	return step(v.conditions(StepDrain, message, nil, condition, ready))
}

// open makes the pod ready again. It also sets Ready to True if nothing else prevents that, because kubelet takes a
// second to do it. In that case it also writes the record, because a change of the pod's metadata makes kubelet sync
// the pod and notice the gate. Otherwise it leaves Ready to kubelet, and only writes the record if it has changed;
// changed is nil if it has not.
func (v *view) open(changed *record.Record) *Step {
	conditions := gate.Open(v.pod)
	if v.otherwiseReady() {
		conditions = append(conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		changed = cmp.Or(v.record.Opened(v.now), changed)
	}
	return v.conditions(StepMarkReady, "put the pod back into its Services", changed, conditions...)
}

// readyLate reports whether kubelet calls everything ready except the pod itself. It is true at most once per update.
// Kubelet computes Ready from the conditions that it knew when it last synced the pod. If the gate was opened before
// the containers were ready, that may be a second or more ago.
func (v *view) readyLate() bool {
	return v.record.Opened(v.now) != nil && v.record.Extension().Opened == nil && v.otherwiseReady() && !kubelet.Ready(v.pod)
}

// otherwiseReady reports whether the pod is ready apart from the update's gates, by kubelet's rule: its containers and
// its other gates are ready.
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
