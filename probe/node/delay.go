package node

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// Reasons of Events and of the condition Delayed.
const (
	reasonDelayed = "ProbesDelayed"
	reasonOnTime  = "ProbesOnTime"
)

// observeDelay records how long an exec probe has waited for its turn.
func (m *Manager) observeDelay(wait, period time.Duration) {
	m.mu.Lock()
	changed := m.delay.Observe(wait, period, time.Now())
	m.mu.Unlock()
	if changed {
		m.reportDelay()
	}
}

// resetDelay resets the delay when the node has no exec probes any more.
func (m *Manager) resetDelay() {
	m.mu.Lock()
	changed := m.delay.Reset()
	m.mu.Unlock()
	if changed {
		m.reportDelay()
	}
}

// reportDelay sends an Event about a changed delay and requests a write of the condition.
func (m *Manager) reportDelay() {
	m.mu.Lock()
	before, message := m.delayed, ""
	factor, _ := m.delay.Factor()
	if factor > 0 {
		message = delayMessage(factor)
	}
	m.delayed = message
	m.writeSoon()
	m.mu.Unlock()
	m.metrics.delay.Set(factor)
	switch message {
	case before: // the daemon has just started, and has nothing new to report
	case "":
		m.config.Events.Event(m.aboutObject(), corev1.EventTypeNormal, reasonOnTime, "Exec probes run as often as their periods say")
	default:
		m.config.Events.Event(m.aboutObject(), corev1.EventTypeWarning, reasonDelayed, message)
	}
}

// restoreDelay takes the reported delay of the previous daemon from the status, until this daemon has measured it. The
// caller holds mu.
func (m *Manager) restoreDelay() {
	if _, known := m.delay.Factor(); known || m.object == nil {
		return
	}
	m.delayed = ""
	if meta.IsStatusConditionTrue(m.object.Status.Conditions, v1alpha1.ConditionProbesDelayed) {
		m.delayed = meta.FindStatusCondition(m.object.Status.Conditions, v1alpha1.ConditionProbesDelayed).Message
	}
}

func delayMessage(factor float64) string {
	return fmt.Sprintf("The node has more exec probes than it can run, or than --exec-probe-cpu-percent of refit-daemon allows: they run at %.3g times their periods", factor)
}

// conditions returns the conditions of the status, given the present ones. There are none if the probes were never
// delayed, and they are unchanged until it is known whether the probes are delayed. The caller holds mu.
func (m *Manager) conditions(before []metav1.Condition, now time.Time) []metav1.Condition {
	factor, known := m.delay.Factor()
	there := meta.FindStatusCondition(before, v1alpha1.ConditionProbesDelayed)
	if m.pruned || !known || factor == 0 && there == nil {
		return before
	}
	delayed := metav1.Condition{
		Type: v1alpha1.ConditionProbesDelayed, Status: metav1.ConditionFalse, Reason: reasonOnTime,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if factor > 0 {
		delayed.Status, delayed.Reason, delayed.Message = metav1.ConditionTrue, reasonDelayed, delayMessage(factor)
	}
	after := slices.Clone(before)
	meta.SetStatusCondition(&after, delayed)
	return after
}
