package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/lifecycle"
)

const (
	drainFinalizer = "crr.apps.kruise.io/unready-acquired"
	acquiredKey    = "crr.apps.kruise.io/unready-acquired"
	acquired       = "2026-11-21T10:00:00Z"
	snapshotKey    = "crr.apps.kruise.io/sync-container-statuses"
	snapshot       = `[{"name":"app","ready":false,"restartCount":4,"containerID":"containerd://app2"}]`
)

func lookedUp(pod *corev1.Pod) admission.Observation {
	return admission.Observation{Pod: pod, Node: &metav1.ObjectMeta{Name: "node-1"}, User: "alice", Now: crrtest.AdmittedAt}
}

// stored is a request for containers app and log of webPod as it is after admission.
func stored(t *testing.T, edits ...func(*v1beta1.ContainerRecreateRequest)) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	request, err := admission.Admit(crrtest.UserRequest("app", "log"), lookedUp(crrtest.WebPod()))
	if err != nil {
		t.Fatal(err)
	}
	request.CreationTimestamp = metav1.NewTime(crrtest.AdmittedAt)
	request.Generation = 1
	for _, edit := range edits {
		edit(request)
	}
	return request
}

type edit = func(*v1beta1.ContainerRecreateRequest)

func phase(p v1beta1.ContainerRecreateRequestPhase) edit {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Status.Phase = p }
}

// taken is the state a refit-daemon leaves behind while it works; takenByKruise is the same for a kruise-daemon.
func taken(r *v1beta1.ContainerRecreateRequest) {
	takenByKruise(r)
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Accepted", Status: "True", Reason: "Accepted"})
}

// takenBySidecar is the state a refit-sidecar leaves behind.
func takenBySidecar(accepted metav1.ConditionStatus) edit {
	return func(r *v1beta1.ContainerRecreateRequest) {
		if accepted == metav1.ConditionTrue {
			takenByKruise(r)
		}
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Accepted", Status: accepted, Reason: crr.ReasonCarriedOutBySidecar})
	}
}

func takenByKruise(r *v1beta1.ContainerRecreateRequest) {
	r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
		{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true},
		{Name: "log", Phase: v1beta1.ContainerRecreateRequestPending},
	}
}

func succeeded(r *v1beta1.ContainerRecreateRequest) {
	crr.Complete(&r.Status, crr.Outcome{}, 1, crrtest.AdmittedAt.Add(time.Second))
}

func drainFor(seconds int64) edit {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Strategy.UnreadyGracePeriodSeconds = &seconds }
}

func finalized(r *v1beta1.ContainerRecreateRequest) { r.Finalizers = []string{"other", drainFinalizer} }

func deleted(r *v1beta1.ContainerRecreateRequest) {
	r.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt}
}

func deadline(seconds int64) edit {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = &seconds }
}

func ttl(seconds int32) edit {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

// Each case has a state, and the expected action of the manager, in one word and the time to check again.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request  []edit
		pod      func(*corev1.Pod)
		noPod    bool
		noNode   bool
		noDaemon bool          // since creation
		kruise   bool          // the node's daemon is a kruise-daemon
		busy     bool          // others of the node are carried out
		after    time.Duration // since creation
		want     string        // status, meta, pod, delete, or nothing
		again    time.Duration // since creation; 0 for none
	}{
		"fresh":                      {want: "", again: time.Minute},
		"fresh with a deadline":      {request: []edit{deadline(10)}, want: "", again: 13 * time.Second},
		"fresh with a long deadline": {request: []edit{deadline(600)}, want: "", again: time.Minute},
		"queued":                     {request: []edit{phase("Pending")}, after: time.Hour, want: ""},
		"carried out":                {request: []edit{taken}, after: time.Hour, want: ""},
		"carried out to a deadline":  {request: []edit{taken, deadline(10)}, after: 12 * time.Second, want: "", again: 13 * time.Second},

		"succeeded":                         {request: []edit{taken, succeeded}, want: "meta"},
		"others are carried out":            {request: []edit{taken, succeeded}, busy: true, after: 2 * time.Second, want: "", again: 4 * time.Second},
		"others, and a time to live":        {request: []edit{taken, succeeded, ttl(2)}, busy: true, after: 2 * time.Second, want: "", again: 3 * time.Second},
		"others for too long":               {request: []edit{taken, succeeded}, busy: true, after: 31 * time.Second, want: "meta"},
		"others, and it is deleted":         {request: []edit{taken, succeeded, finalized, deleted}, busy: true, noPod: true, after: 2 * time.Second, want: "meta"},
		"succeeded and cleaned up":          {request: []edit{taken, succeeded, inactive}, want: ""},
		"succeeded, to be deleted":          {request: []edit{taken, succeeded, inactive, ttl(10)}, want: "", again: 11 * time.Second},
		"succeeded, time to live over":      {request: []edit{taken, succeeded, inactive, ttl(10)}, after: 11 * time.Second, want: "delete"},
		"nothing is tidied before deletion": {request: []edit{taken, succeeded, ttl(0)}, after: 2 * time.Second, want: "delete"},
		"ended without conditions":          {request: []edit{takenByKruise, phase("Completed")}, want: "status"},
		"revived after its end":             {request: []edit{taken, succeeded, phase("Recreating")}, want: "status"},

		"finalizer, pod not ready":     {request: []edit{taken, succeeded, finalized}, pod: held, want: "pod"},
		"finalizer, pod ready again":   {request: []edit{taken, succeeded, finalized}, pod: gated, want: "meta"},
		"finalizer, pod gone":          {request: []edit{taken, succeeded, finalized}, noPod: true, want: "meta"},
		"deleted under way, not ready": {request: []edit{taken, finalized, deleted}, pod: held, want: "pod"},
		"deleted under way":            {request: []edit{taken, finalized, deleted}, want: "meta"},
		"deleted, nothing to do":       {request: []edit{taken, deleted}, want: ""},
		"deleted, time to live over":   {request: []edit{taken, succeeded, inactive, ttl(0), deleted}, after: time.Hour, want: ""},

		"finalizer, pod going":                        {request: []edit{taken, succeeded, finalized}, pod: func(p *corev1.Pod) { held(p); p.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt} }, want: "meta"},
		"deleted, ended without conditions":           {request: []edit{takenByKruise, phase("Completed"), deleted}, want: ""},
		"ended without a time, to be deleted at once": {request: []edit{takenByKruise, phase("Completed"), ttl(0)}, want: "status"},
		"ended without condition Succeeded": {request: []edit{taken, succeeded, inactive, func(r *v1beta1.ContainerRecreateRequest) {
			meta.RemoveStatusCondition(&r.Status.Conditions, "Succeeded")
		}}, want: "status"},

		"never admitted":                   {request: []edit{unadmitted}, want: "status"},
		"pod gone":                         {noPod: true, want: "status"},
		"pod going":                        {pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt} }, want: "status"},
		"pod replaced":                     {pod: func(p *corev1.Pod) { p.UID = "uid-2" }, request: []edit{taken}, want: "status"},
		"node gone":                        {noNode: true, request: []edit{taken}, want: "status"},
		"deadline":                         {request: []edit{taken, deadline(10)}, after: 13 * time.Second, want: "status"},
		"no daemon":                        {after: time.Minute, want: "status"},
		"daemon not ready":                 {request: []edit{taken}, noDaemon: true, after: 4 * time.Minute, want: "", again: 5 * time.Minute},
		"daemon dead":                      {request: []edit{taken}, noDaemon: true, after: 5 * time.Minute, want: "status"},
		"a sidecar does without a daemon":  {request: []edit{takenBySidecar("True")}, noDaemon: true, after: time.Hour, want: ""},
		"so does one that is to take it":   {request: []edit{phase("Pending"), takenBySidecar("False")}, noDaemon: true, after: time.Hour, want: ""},
		"daemon dead while queued":         {request: []edit{phase("Pending")}, noDaemon: true, after: 5 * time.Minute, want: "status"},
		"ended without condition Complete": {request: []edit{taken, succeeded, inactive, incomplete}, want: "status"},

		"drain: finalizer first":                       {request: []edit{taken, drainFor(5)}, pod: gated, want: "meta"},
		"drain: pod second":                            {request: []edit{taken, drainFor(5), finalized}, pod: gated, want: "pod"},
		"drain: condition third":                       {request: []edit{taken, drainFor(5), finalized}, pod: held, want: "status"},
		"drain: annotation fourth":                     {request: []edit{taken, drainFor(5), finalized, draining}, pod: held, want: "meta"},
		"drain: then nothing":                          {request: []edit{taken, drainFor(5), finalized, draining, annotate(acquiredKey, acquired)}, pod: held, want: ""},
		"drain: stored by a manager of OpenKruise 1.9": {request: []edit{taken, drainFor(5), finalized, annotate(acquiredKey, acquired)}, pod: held, want: "status"},
		"drain: not while queued":                      {request: []edit{phase("Pending"), drainFor(5)}, pod: gated, want: ""},
		"drain: not without gate":                      {request: []edit{taken, drainFor(5)}, want: ""},
		"drain: foreign list broken":                   {request: []edit{taken, drainFor(5), finalized}, pod: garbled, want: ""},
		"drain: kruise, no gate":                       {request: []edit{takenByKruise, drainFor(5)}, want: "status"},

		"kruise: old instances run":   {request: []edit{takenByKruise}, want: ""},
		"kruise: new instance runs":   {request: []edit{takenByKruise}, pod: restarted, want: "status"},
		"kruise: new one waits":       {request: []edit{takenByKruise}, pod: crashing, want: ""},
		"kruise: nothing is reported": {request: []edit{takenByKruise}, pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, want: ""},
		"kruise: status is written":   {request: []edit{takenByKruise, withSnapshot}, pod: restarted, want: "meta"},
		"kruise: both are written":    {request: []edit{takenByKruise, withSnapshot, annotate(snapshotKey, snapshot)}, pod: restarted, want: ""},
		"kruise: annotation alone":    {request: []edit{takenByKruise, annotate(snapshotKey, snapshot)}, pod: restarted, want: "status"},
		"kruise: annotation broken":   {request: []edit{takenByKruise, withSnapshot, annotate(snapshotKey, "{")}, pod: restarted, want: "meta"},
		"kruise: between instances":   {request: []edit{takenByKruise, withSnapshot, annotate(snapshotKey, snapshot)}, want: ""},
		"refit needs no such writes":  {request: []edit{taken}, pod: restarted, want: ""},

		"taken, then kruise":          {request: []edit{taken}, kruise: true, pod: restarted, want: "status"},
		"taken, then kruise, told":    {request: []edit{taken, withSnapshot}, kruise: true, pod: restarted, want: "meta"},
		"taken, then kruise, no gate": {request: []edit{taken, drainFor(5)}, kruise: true, want: "status"},
		"kruise beside a sidecar":     {request: []edit{takenBySidecar("True")}, kruise: true, pod: restarted, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, observed := stored(t, tc.request...), lifecycle.Observation{Pod: crrtest.WebPod(), NodeGone: tc.noNode, KruiseDaemon: tc.kruise, NodeBusy: tc.busy}
			if tc.pod != nil {
				tc.pod(observed.Pod)
			}
			if tc.noPod {
				observed.Pod = nil
			}
			if tc.noDaemon {
				observed.NoDaemonSince = crrtest.AdmittedAt
			}
			before, podBefore := request.DeepCopy(), observed.Pod.DeepCopy()
			got := next(t, request, observed, crrtest.AdmittedAt.Add(tc.after))
			if writes := strings.Join(writes(got), " "); writes != tc.want {
				t.Errorf("writes %q, want %q (%s)", writes, tc.want, got.Why)
			}
			if tc.want == "" && !got.Again.Equal(at(tc.again)) {
				t.Errorf("again at %v, want %v", got.Again, at(tc.again))
			}
			if got.Why == "" {
				t.Error("no reason given")
			}
			if diff := cmp.Diff(before, request) + cmp.Diff(podBefore, observed.Pod); diff != "" {
				t.Errorf("arguments changed:\n%s", diff)
			}
		})
	}
}

func at(since time.Duration) time.Time {
	if since == 0 {
		return time.Time{}
	}
	return crrtest.AdmittedAt.Add(since)
}

func writes(d lifecycle.Decision) []string {
	var list []string
	for _, write := range []struct {
		name string
		set  bool
	}{{"status", d.Status != nil}, {"meta", d.Meta != nil}, {"pod", d.Pod != nil}, {"delete", d.Delete}} {
		if write.set {
			list = append(list, write.name)
		}
	}
	return list
}

func incomplete(r *v1beta1.ContainerRecreateRequest) {
	meta.RemoveStatusCondition(&r.Status.Conditions, "Finished")
}

func inactive(r *v1beta1.ContainerRecreateRequest) { delete(r.Labels, "crr.apps.kruise.io/active") }

func unadmitted(r *v1beta1.ContainerRecreateRequest) { r.Spec.Containers[1].StatusContext = nil }

func draining(r *v1beta1.ContainerRecreateRequest) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "PreRecreateGrace", Status: "True", LastTransitionTime: metav1.NewTime(crrtest.AdmittedAt)})
}

func withSnapshot(r *v1beta1.ContainerRecreateRequest) {
	r.Status.ContainerStatusSnapshot = []v1beta1.ContainerStatusSnapshot{{Name: "app", RestartCount: 4, ContainerID: "containerd://app2"}}
}

// gated: the pod is ready and has the readiness gate; held: made not ready by the request; garbled: with an unreadable
// condition.
func gated(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "KruisePodReady"}}
	p.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "KruisePodReady", Status: "True"}}
}

func held(p *corev1.Pod) {
	gated(p)
	p.Status.Conditions[0].Status = "False"
	p.Status.Conditions[1].Status = "False"
	p.Status.Conditions[1].Message = `[{"userAgent":"ContainerRecreateRequest","key":"shop/r"}]`
}

func garbled(p *corev1.Pod) {
	held(p)
	p.Status.Conditions[1].Message = `not a list`
}

// The manager does not end a request that the daemon still has to carry out.
func TestRequestOfAFinishedPodIsLeftToTheDaemon(t *testing.T) {
	t.Parallel()
	for name, terminated := range map[string]bool{"finished": true, "not finished": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := crrtest.WebPod()
			pod.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt}
			if terminated {
				pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
			}
			got := next(t, stored(t), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt)
			if ended := got.Status != nil; ended == terminated {
				t.Errorf("ended %v: %s", ended, got.Why)
			}
		})
	}
}

func annotate(key, value string) edit {
	return func(r *v1beta1.ContainerRecreateRequest) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}
