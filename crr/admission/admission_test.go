package admission_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/requester"
)

// The fields that a manager hands over to a daemon, forged by a user.
const (
	acquiredKey = "crr.apps.kruise.io/unready-acquired"
	acquired    = "2026-11-21T10:00:00Z"
	snapshotKey = "crr.apps.kruise.io/sync-container-statuses"
	snapshot    = `[{"name":"app","ready":false,"restartCount":4,"containerID":"containerd://app2"}]`
)

func observed(pod *corev1.Pod) admission.Observation {
	return admission.Observation{Pod: pod, Node: &metav1.ObjectMeta{Name: "node-1"}, User: "alice", Now: crrtest.AdmittedAt}
}

func TestAdmitFillsInWhatItKnows(t *testing.T) {
	t.Parallel()
	request := crrtest.UserRequest("log", "app")
	request.Labels = map[string]string{"team": "a"}
	request.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	given := request.DeepCopy()

	got, err := admission.Admit(request, observed(crrtest.WebPod()))
	if err != nil {
		t.Fatal(err)
	}
	want := crrtest.UserRequest()
	want.Labels = map[string]string{
		"team": "a", "crr.apps.kruise.io/pod-uid": "uid-1", "crr.apps.kruise.io/node-name": "node-1", "crr.apps.kruise.io/active": "true",
	}
	want.Annotations = map[string]string{"refit.dev/admitted-at": "2026-11-21T10:00:00.123456789Z", "refit.dev/requested-by": "alice"}
	want.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "log", StatusContext: crrtest.StatusContext("log1", 0)}, {Name: "app", StatusContext: crrtest.StatusContext("app1", 3)},
	}
	want.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Fail", TerminationGracePeriodSeconds: new(int64(7))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(given, request); diff != "" {
		t.Errorf("the argument was changed (-before +after):\n%s", diff)
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request func(r *v1beta1.ContainerRecreateRequest)
		pod     func(p *corev1.Pod)
		check   func(t *testing.T, got *v1beta1.ContainerRecreateRequest)
	}{
		"a native sidecar": {
			request: func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Containers[0].Name = "mesh" },
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				if diff := cmp.Diff(crrtest.StatusContext("mesh1", 0), got.Spec.Containers[0].StatusContext); diff != "" {
					t.Error(diff)
				}
			},
		},
		"the user's grace wins over the pod's": {
			request: func(r *v1beta1.ContainerRecreateRequest) {
				r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Ignore", TerminationGracePeriodSeconds: new(int64(1))}
			},
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				if s := got.Spec.Strategy; s.FailurePolicy != "Ignore" || *s.TerminationGracePeriodSeconds != 1 {
					t.Errorf("strategy %+v", s)
				}
			},
		},
		"a negative grace of the pod means one second": {
			pod:   func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-1)) },
			check: wantGrace(1),
		},
		"an endless grace of the pod is bounded": {
			pod:   func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1<<63 - 1)) },
			check: wantGrace(1<<31 - 1),
		},
		"preStop exec": {
			pod:   preStop(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}),
			check: wantPreStop(&v1beta1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}, 0),
		},
		"preStop sleep": {
			pod:   preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}),
			check: wantPreStop(&v1beta1.ProbeHandler{Sleep: &corev1.SleepAction{Seconds: 5}}, 0),
		},
		"preStop httpGet with a port number": {
			pod:   preStop(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}),
			check: wantPreStop(&v1beta1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}, 0),
		},
		"preStop httpGet with a port name": {
			pod:   preStop(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}),
			check: wantPreStop(&v1beta1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}, 1),
		},
		"grace 0 runs no preStop": {
			request: func(r *v1beta1.ContainerRecreateRequest) {
				r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(0))}
			},
			pod:   preStop(corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: "example.org"}}),
			check: wantPreStop(nil, 0),
		},
		"restartPolicy OnFailure":         {pod: policy(corev1.RestartPolicyOnFailure)},
		"restartPolicy Never, overridden": {pod: policy(corev1.RestartPolicyNever), request: annotate("refit.dev/restart-policy", "override")},
		"restartPolicy Never, but own one": {pod: func(p *corev1.Pod) {
			policy(corev1.RestartPolicyNever)(p)
			p.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}},
		"restartPolicy Never, but own rule": {pod: func(p *corev1.Pod) {
			policy(corev1.RestartPolicyNever)(p)
			p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{}}
		}},
		"sidecars of an ended job": {pod: func(p *corev1.Pod) {
			policy(corev1.RestartPolicyNever)(p)
			p.Status.Phase = corev1.PodSucceeded
			p.Status.Conditions = []corev1.PodCondition{{Type: "SidecarTerminated", Status: corev1.ConditionTrue}}
		}},
		"a mirror pod": {pod: func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.hash": "hash"}
		}},
		"the right labels given": {request: label("crr.apps.kruise.io/pod-uid", "uid-1")},
		"back-off respected":     {request: annotate("refit.dev/restart-backoff", "respect")},
		"a forged time of admission": {
			request: annotate("refit.dev/admitted-at", "2000-01-01T00:00:00Z"),
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				if at := got.Annotations["refit.dev/admitted-at"]; at != "2026-11-21T10:00:00.123456789Z" {
					t.Errorf("admitted at %s", at)
				}
			},
		},
		"a forged requester": {
			request: func(r *v1beta1.ContainerRecreateRequest) {
				r.Annotations = map[string]string{"refit.dev/requested-by": "system:admin", "refit.dev/reason": "node pressure"}
			},
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				if by := requester.Clause(got); by != "requested by alice: node pressure" {
					t.Errorf("got %q", by)
				}
			},
		},
		"filled in by the webhook of a kruise-manager": {
			request: func(r *v1beta1.ContainerRecreateRequest) {
				r.Labels = map[string]string{"crr.apps.kruise.io/pod-uid": "uid-1", "crr.apps.kruise.io/node-name": "node-1", "crr.apps.kruise.io/active": "true"}
				r.Spec.Containers[0].StatusContext = crrtest.StatusContext("of-a-stale-cache", 0)
				r.Spec.Containers[0].PreStop = &v1beta1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"forged"}}}
			},
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				want, err := admission.Admit(crrtest.UserRequest("app"), observed(crrtest.WebPod()))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
					t.Errorf("not replaced by what the pod says (-want +got):\n%s", diff)
				}
			},
		},
		"a forged hand-over": {
			request: func(r *v1beta1.ContainerRecreateRequest) {
				r.Status.Conditions = []metav1.Condition{{Type: "Succeeded", Status: "True"}}
				r.Annotations = map[string]string{acquiredKey: acquired, snapshotKey: snapshot}
			},
			check: func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
				if len(got.Status.Conditions) > 0 || got.Annotations[acquiredKey] != "" || got.Annotations[snapshotKey] != "" {
					t.Errorf("conditions %v, annotations %v", got.Status.Conditions, got.Annotations)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, pod := crrtest.UserRequest("app"), crrtest.WebPod()
			if tc.request != nil {
				tc.request(request)
			}
			if tc.pod != nil {
				tc.pod(pod)
			}
			got, err := admission.Admit(request, observed(pod))
			if err != nil {
				t.Fatal(err)
			}
			if tc.check != nil {
				tc.check(t, got)
			}
		})
	}
}

func TestAdmitMarksServerlessPods(t *testing.T) {
	t.Parallel()
	known := observed(crrtest.WebPod())
	known.Node.Labels = map[string]string{"type": "virtual-kubelet"}
	got, err := admission.Admit(crrtest.UserRequest("app"), known)
	if err != nil || got.Labels["type"] != "virtual-kubelet" {
		t.Errorf("labels %v, error %v", got.Labels, err)
	}
}

func wantGrace(seconds int64) func(*testing.T, *v1beta1.ContainerRecreateRequest) {
	return func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
		if grace := *got.Spec.Strategy.TerminationGracePeriodSeconds; grace != seconds {
			t.Errorf("grace %d, want %d", grace, seconds)
		}
	}
}

func wantPreStop(hook *v1beta1.ProbeHandler, ports int) func(*testing.T, *v1beta1.ContainerRecreateRequest) {
	return func(t *testing.T, got *v1beta1.ContainerRecreateRequest) {
		if diff := cmp.Diff(hook, got.Spec.Containers[0].PreStop); diff != "" {
			t.Errorf("preStop (-want +got):\n%s", diff)
		}
		if n := len(got.Spec.Containers[0].Ports); n != ports {
			t.Errorf("%d ports, want %d", n, ports)
		}
	}
}

func preStop(hook corev1.LifecycleHandler) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &hook}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	}
}

func policy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

func annotate(key, value string) func(*v1beta1.ContainerRecreateRequest) {
	return func(r *v1beta1.ContainerRecreateRequest) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

func label(key, value string) func(*v1beta1.ContainerRecreateRequest) {
	return func(r *v1beta1.ContainerRecreateRequest) { metav1.SetMetaDataLabel(&r.ObjectMeta, key, value) }
}

// refused checks the class, the field and that the message says the words.
func refused(t *testing.T, err error, code int32, field string, words ...string) {
	t.Helper()
	var refusal *admission.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal of %s", err, field)
	}
	if refusal.Code != code || refusal.Field != field {
		t.Errorf("refused with %d for %s, want %d for %s (%s)", refusal.Code, refusal.Field, code, field, refusal.Message)
	}
	for _, word := range words {
		if !strings.Contains(refusal.Message, word) {
			t.Errorf("message %q lacks %q", refusal.Message, word)
		}
	}
	if len(refusal.Message) > 2048 {
		t.Errorf("message has %d bytes", len(refusal.Message))
	}
}

func cmpRequests(want, got *v1beta1.ContainerRecreateRequest) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func TestRequestOnBehalfOfAUserNamesTheUser(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		onBehalf   bool
		sent, want string
	}{
		"by the manager":             {true, "bob", "bob"},
		"by the manager for nobody":  {true, "", "alice"},
		"by a user who claims to be": {false, "bob", "alice"},
	} {
		request := crrtest.UserRequest("app")
		if tt.sent != "" {
			request.Annotations = map[string]string{v1beta1.AnnotationRequestedBy: tt.sent}
		}
		known := observed(crrtest.WebPod())
		known.OnBehalf = tt.onBehalf
		got, err := admission.Admit(request, known)
		if err != nil || got.Annotations[v1beta1.AnnotationRequestedBy] != tt.want {
			t.Errorf("%s: %v, %v", name, got.Annotations, err)
		}
	}
}
