package history_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

const (
	daemonUser  = "system:serviceaccount:refit-system:refit-daemon"
	managerUser = "system:serviceaccount:refit-system:refit-manager"
	kubeletUser = "system:node:node-1"
	user        = "tester"
	probed      = "chaos.example.com/up"
)

// fixture writes the records of a run by hand. Times are seconds from its begin.
type fixture struct {
	t                                                               *testing.T
	audit, calls, signals, faults, turns, updates, samples, watched strings.Builder
	revision                                                        int
	options                                                         verdict.Options
	requests                                                        map[string]*v1beta1.ContainerRecreateRequest
	pods                                                            map[string]*corev1.Pod
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{
		t: t, revision: 100, requests: map[string]*v1beta1.ContainerRecreateRequest{}, pods: map[string]*corev1.Pod{},
		options: verdict.Options{Daemon: daemonUser, Manager: managerUser, Patience: 20 * time.Second, Probed: probed, Follow: 10 * time.Second, Reconnect: 30 * time.Second},
	}
}

func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func id(name string) string { return name + strings.Repeat("0", 64-len(name)) }

func (s *fixture) line(to *strings.Builder, v any) {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	to.Write(append(b, '\n'))
}

type ref struct{ verb, user, resource, subresource, namespace, name string }

// write is one line of the audit log.
func (s *fixture) write(seconds float64, r ref, code int, stored any) {
	s.t.Helper()
	s.writePatch(seconds, r, code, nil, stored)
}

func (s *fixture) writePatch(seconds float64, r ref, code int, patch, stored any) {
	s.t.Helper()
	s.writeAs("", seconds, r, map[string]any{"code": code}, patch, stored)
}

// writeAs is a write of the client that calls itself agent.
func (s *fixture) writeAs(agent string, seconds float64, r ref, status map[string]any, patch, stored any) {
	s.t.Helper()
	group := ""
	if r.resource == "containerrecreaterequests" || r.resource == "imagepulljobs" || r.resource == entry.SetResource {
		group = "apps.kruise.io"
	}
	who := map[string]any{"username": r.user}
	if r.user == daemonUser {
		who["extra"] = map[string][]string{"authentication.kubernetes.io/node-name": {"node-1"}}
	}
	s.line(&s.audit, map[string]any{
		"kind": "Event", "stage": "ResponseComplete", "verb": r.verb, "user": who,
		"objectRef":      map[string]string{"resource": r.resource, "namespace": r.namespace, "name": r.name, "apiGroup": group, "subresource": r.subresource},
		"responseStatus": status, "requestObject": patch, "responseObject": stored, "userAgent": agent,
		"requestReceivedTimestamp": at(seconds), "stageTimestamp": at(seconds + 0.005),
	})
}

// pod is kubelet's word on a pod with one container, "app".
func (s *fixture) pod(seconds float64, uid, containerID string, ready bool) {
	s.t.Helper()
	s.revision++
	grace := int64(2)
	status := corev1.ContainerStatus{Name: "app", ContainerID: "containerd://" + id(containerID), Ready: ready}
	if ready {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(seconds))}
	}
	s.pods[uid] = &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: "pod-" + uid, UID: types.UID(uid), ResourceVersion: fmt.Sprint(s.revision),
		},
		Spec:   corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: &grace},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
	s.write(seconds, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-" + uid}, 200, s.pods[uid])
}

// startError is what kubelet says of a container whose start the runtime has broken off.
func (s *fixture) startError(seconds float64, uid, containerID string, finished float64) {
	s.t.Helper()
	s.pod(seconds, uid, containerID, false)
	s.revision++
	pod := s.pods[uid].DeepCopy()
	pod.ResourceVersion = fmt.Sprint(s.revision)
	pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{
		Reason: "StartError", ExitCode: 128, FinishedAt: metav1.NewTime(at(finished)), ContainerID: "containerd://" + id(containerID),
	}
	s.pods[uid] = pod
	s.write(seconds, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-" + uid}, 200, pod)
}

// ended is kubelet's word on a container of one of our own programs.
func (s *fixture) ended(name string, how corev1.ContainerStateTerminated) {
	s.t.Helper()
	s.pod(5, "uid-3", "f1", false)
	pod := s.pods["uid-3"]
	pod.Status.ContainerStatuses[0].State.Terminated = &how
	s.write(6, ref{"patch", kubeletUser, "pods", "status", "refit-system", name}, 200, pod)
}

// turn has the pod's application say something else of itself.
func (s *fixture) turn(seconds float64, uid, asked string, up bool) {
	s.t.Helper()
	s.line(&s.turns, entry.Turn{At: at(seconds), PodUID: uid, Asked: asked, Up: up})
}

// mark is what the manager writes when a probe has another result.
func (s *fixture) mark(seconds float64, uid string, up corev1.ConditionStatus, reason ...string) {
	s.t.Helper()
	s.revision++
	pod := s.pods[uid].DeepCopy()
	pod.ResourceVersion = fmt.Sprint(s.revision)
	pod.Status.Conditions = []corev1.PodCondition{{Type: probed, Status: up, Reason: strings.Join(reason, "")}}
	s.pods[uid] = pod
	s.write(seconds, ref{"patch", managerUser, "pods", "status", "chaos", "pod-" + uid}, 200, pod)
}

func (s *fixture) deletePod(seconds float64, uid string) {
	s.write(seconds, ref{"delete", user, "pods", "", "chaos", "pod-" + uid}, 200, nil)
}

// create admits a request for the pod while that container runs in it.
func (s *fixture) create(seconds float64, name, podUID, containerID string, change ...func(*v1beta1.ContainerRecreateRequest)) {
	s.t.Helper()
	s.revision++
	r := &v1beta1.ContainerRecreateRequest{
		TypeMeta: metav1.TypeMeta{Kind: "ContainerRecreateRequest", APIVersion: v1beta1.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: fmt.Sprint(s.revision),
			CreationTimestamp: metav1.NewTime(at(seconds)),
			Labels:            map[string]string{v1beta1.LabelPodUID: podUID, v1beta1.LabelNodeName: "node-1"},
		},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "pod-" + podUID,
			Containers: []v1beta1.ContainerRecreateRequestContainer{{
				Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + id(containerID)},
			}},
		},
	}
	for _, c := range change {
		c(r)
	}
	s.requests[name] = r
	s.write(seconds, ref{"create", user, "containerrecreaterequests", "", "chaos", name}, 201, r)
}

// status is a write of a request's status by the daemon.
func (s *fixture) status(seconds float64, name string, change func(*v1beta1.ContainerRecreateRequestStatus)) {
	s.t.Helper()
	s.store(name, change)
	s.write(seconds, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", name}, 200, s.requests[name])
}

// store is a write whose audit line is lost.
func (s *fixture) store(name string, change func(*v1beta1.ContainerRecreateRequestStatus)) {
	s.revision++
	r := s.requests[name].DeepCopy()
	r.ResourceVersion = fmt.Sprint(s.revision)
	change(&r.Status)
	s.requests[name] = r
}

func recreating(containerID string) func(*v1beta1.ContainerRecreateRequestStatus) {
	return func(status *v1beta1.ContainerRecreateRequestStatus) {
		status.Phase = v1beta1.ContainerRecreateRequestRecreating
		status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
			Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://" + id(containerID),
		}}
	}
}

// completed is success when the message is empty.
func completed(seconds float64, message string) func(*v1beta1.ContainerRecreateRequestStatus) {
	return func(status *v1beta1.ContainerRecreateRequestStatus) {
		now := metav1.NewTime(at(seconds))
		status.Phase, status.CompletionTime, status.Message = v1beta1.ContainerRecreateRequestCompleted, &now, message
		for i := range status.ContainerRecreateStates {
			status.ContainerRecreateStates[i].Phase = v1beta1.ContainerRecreateRequestSucceeded
			if message != "" {
				status.ContainerRecreateStates[i].Phase = v1beta1.ContainerRecreateRequestFailed
			}
		}
	}
}

func (s *fixture) call(seconds float64, method, containerID, code string, took float64) {
	s.t.Helper()
	s.callWithGrace(seconds, method, containerID, code, took, 2)
}

func (s *fixture) callWithGrace(seconds float64, method, containerID, code string, took float64, grace int) {
	s.t.Helper()
	s.line(&s.calls, map[string]any{
		"time": at(seconds), "method": method, "container_id": id(containerID), "timeout": grace, "duration_ms": took * 1000, "code": code,
		"caller": "pid=0",
	})
}

// app is a line of the application's own log: "start", "SIGTERM", "exit signal", "exit crash".
func (s *fixture) app(seconds float64, podUID, what string) {
	s.t.Helper()
	line := map[string]any{"time": at(seconds), "event": what, "container": "app", "pod_uid": podUID, "pid": 1}
	if strings.HasPrefix(what, "SIG") {
		line["event"], line["signal"] = "signal", what
	}
	if reason, ok := strings.CutPrefix(what, "exit "); ok {
		line["event"], line["text"] = "exit", reason
	}
	s.line(&s.signals, line)
}

func (s *fixture) fault(kind string, begin, end float64, impedes bool) {
	s.t.Helper()
	s.line(&s.faults, entry.Fault{Kind: kind, Begin: at(begin), End: at(end), Impedes: impedes})
}

func (s *fixture) faultOn(node, kind string, begin, end float64) {
	s.t.Helper()
	s.line(&s.faults, entry.Fault{Kind: kind, Node: node, Begin: at(begin), End: at(end), Impedes: true})
}

func (s *fixture) records() model.Records {
	s.t.Helper()
	var records model.Records
	var err error
	check := func() {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	records.Writes, records.Broken, err = entry.ParseAudit("audit.log", strings.NewReader(s.audit.String()))
	check()
	records.Calls, err = entry.ParseCalls("calls.jsonl", strings.NewReader(s.calls.String()))
	check()
	records.Signals, err = entry.ParseSignals("uid-1.jsonl", strings.NewReader(s.signals.String()))
	check()
	records.Updates, err = entry.ParseSignals("updates-uid-9.jsonl", strings.NewReader(s.updates.String()))
	check()
	records.Samples, err = entry.ParseSamples("samples.jsonl", strings.NewReader(s.samples.String()))
	check()
	records.Watched, err = entry.ParseWatched("watched.jsonl", strings.NewReader(s.watched.String()))
	check()
	records.Faults, err = entry.ParseFaults("faults.jsonl", strings.NewReader(s.faults.String()))
	check()
	records.Turns, err = entry.ParseTurns("turns.jsonl", strings.NewReader(s.turns.String()))
	check()
	records.End = at(300)
	return records
}

func (s *fixture) check() verdict.Report { return history.Check(s.records(), s.options) }
