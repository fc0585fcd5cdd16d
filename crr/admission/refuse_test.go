package admission_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

func TestAdmitRefuses(t *testing.T) {
	t.Parallel()
	type request = v1beta1.ContainerRecreateRequest
	container := func(names ...string) func(*request) {
		return func(r *request) { r.Spec.Containers = crrtest.UserRequest(names...).Spec.Containers }
	}
	const first = "spec.containers[0].name"
	for name, tc := range map[string]struct {
		request  func(*request)
		pod      func(*corev1.Pod)
		observed func(*admission.Observation)
		code     int32 // 400 unless set
		field    string
		words    []string
	}{
		"no pod name":          {request: func(r *request) { r.Spec.PodName = "" }, field: "spec.podName", words: []string{"can not be empty"}},
		"a path as pod name":   {request: func(r *request) { r.Spec.PodName = "../web" }, field: "spec.podName", words: []string{`"../web"`}},
		"64 KiB of pod name":   {request: func(r *request) { r.Spec.PodName = strings.Repeat("a", 64<<10) }, field: "spec.podName"},
		"no containers":        {request: container(), field: "spec.containers", words: []string{"can not be null"}},
		"5,000 containers":     {request: container(make([]string, 5000)...), field: "spec.containers", words: []string{"5000", "at most 256"}},
		"nameless container":   {request: container("app", ""), field: "spec.containers[1].name"},
		"invalid UTF-8":        {request: container("\xff\xfe"), field: first},
		"a container twice":    {request: container("app", "log", "app"), field: "spec.containers[2].name", words: []string{"can not recreate app multi times"}},
		"deadline below 3":     {request: func(r *request) { r.Spec.ActiveDeadlineSeconds = new(int64(2)) }, field: "spec.activeDeadlineSeconds", words: []string{"less than 3s"}},
		"endless deadline":     {request: func(r *request) { r.Spec.ActiveDeadlineSeconds = new(int64(1 << 62)) }, field: "spec.activeDeadlineSeconds", words: []string{"2147483647"}},
		"negative TTL":         {request: func(r *request) { r.Spec.TTLSecondsAfterFinished = new(int32(-1)) }, field: "spec.ttlSecondsAfterFinished"},
		"negative grace":       {request: strategy(v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(-1))}), field: "spec.strategy.terminationGracePeriodSeconds", words: []string{"must be non-negative integer"}},
		"negative drain":       {request: strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(-1))}), field: "spec.strategy.unreadyGracePeriodSeconds", words: []string{"must be non-negative integer"}},
		"negative min started": {request: strategy(v1beta1.ContainerRecreateRequestStrategy{MinStartedSeconds: -1}), field: "spec.strategy.minStartedSeconds"},
		"failure policy":       {request: strategy(v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Retry"}), field: "spec.strategy.failurePolicy", words: []string{`unknown failurePolicy "Retry"`, "Fail or Ignore"}},
		"megabyte annotations": {request: annotate("a", strings.Repeat("x", 1<<20)), field: "metadata.annotations", words: []string{"262144"}},
		"restart-backoff":      {request: annotate("refit.dev/restart-backoff", "off"), field: "metadata.annotations[refit.dev/restart-backoff]", words: []string{`"off"`, "respect or skip"}},
		"restart-policy":       {request: annotate("refit.dev/restart-policy", "Always"), field: "metadata.annotations[refit.dev/restart-policy]", words: []string{"override"}},

		"instance replaced meanwhile": {
			request: annotate("refit.dev/expected-instances", `{"app":"containerd://app0"}`), code: http.StatusConflict,
			field: "metadata.annotations[refit.dev/expected-instances]", words: []string{"container app has been replaced", "containerd://app1", "containerd://app0"},
		},
		"expected instance of another container": {
			request: annotate("refit.dev/expected-instances", `{"app":"containerd://app1","log":"containerd://log1"}`),
			field:   "metadata.annotations[refit.dev/expected-instances]", words: []string{`container "log" is not in spec.containers`},
		},
		"expected instances that are no object": {
			request: annotate("refit.dev/expected-instances", `["containerd://app1"]`),
			field:   "metadata.annotations[refit.dev/expected-instances]", words: []string{"JSON object"},
		},

		"no such pod":     {observed: func(f *admission.Observation) { f.Pod = nil }, field: "spec.podName", words: []string{"no found Pod named web in namespace shop"}},
		"ended pod":       {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, field: "spec.podName", words: []string{"inactive Pod", "phase Failed"}},
		"pod going":       {pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt} }, field: "spec.podName", words: []string{"inactive Pod", "being deleted"}},
		"unscheduled pod": {pod: func(p *corev1.Pod) { p.Spec.NodeName = "" }, field: "spec.podName", words: []string{"pending Pod"}},
		"no such node":    {observed: func(f *admission.Observation) { f.Node = nil }, field: "spec.podName", words: []string{"node-1"}},
		"mirror pod of unknown UID": {
			pod:   func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"} },
			field: "spec.podName", words: []string{"kubernetes.io/config.hash"},
		},

		"unknown container":   {request: container("app", "db"), field: "spec.containers[1].name", words: []string{"container db not found in Pod web", "app, log"}},
		"init container":      {request: container("setup"), field: first, words: []string{"init container", "runs once", "native sidecars"}},
		"ephemeral container": {request: container("debug"), field: first, words: []string{"ephemeral container", "never restarts"}},
		"no status":           {pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, field: first, words: []string{"not found app containerStatus in Pod Status"}},
		"never started": {
			pod: func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
				}}
			},
			field: first, words: []string{"no containerID in app containerStatus", "ImagePullBackOff"},
		},
		"restartPolicy Never": {pod: policy(corev1.RestartPolicyNever), field: first, words: []string{"would end it", "refit.dev/restart-policy: override"}},
		"own restartPolicy Never": {
			pod:   func(p *corev1.Pod) { p.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever) },
			field: first, words: []string{"would end it"},
		},
		"preStop tcpSocket": {pod: preStop(corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}), field: first, words: []string{"tcpSocket", "terminationGracePeriodSeconds: 0"}},
		"preStop to another host": {
			pod:   preStop(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254"}}),
			field: first, words: []string{`"169.254.169.254"`, "remove host", "terminationGracePeriodSeconds: 0"},
		},

		"read-only fields": {
			request: func(r *request) {
				container("app", "log")(r)
				r.Spec.Containers[0].StatusContext = crrtest.StatusContext("app1", 3)
				r.Spec.Containers[1].PreStop = &v1beta1.ProbeHandler{}
				r.Spec.Containers[1].Ports = []corev1.ContainerPort{{}}
			},
			field: "spec.containers[0].statusContext",
			words: []string{"read-only", "delete spec.containers[0].statusContext, spec.containers[1].preStop, spec.containers[1].ports"},
		},
		"forged pod UID": {request: label("crr.apps.kruise.io/pod-uid", "uid-2"), code: http.StatusForbidden, field: "metadata.labels[crr.apps.kruise.io/pod-uid]", words: []string{`"uid-1"`, "remove it"}},
		"forged node":    {request: label("crr.apps.kruise.io/node-name", "node-2"), code: http.StatusForbidden, field: "metadata.labels[crr.apps.kruise.io/node-name]"},
		"born inactive":  {request: label("crr.apps.kruise.io/active", "false"), code: http.StatusForbidden, field: "metadata.labels[crr.apps.kruise.io/active]"},
		"long node name": {
			pod:   func(p *corev1.Pod) { p.Spec.NodeName = strings.Repeat("n", 64) },
			field: "metadata.labels[crr.apps.kruise.io/node-name]", words: []string{"63"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, known := crrtest.UserRequest("app"), observed(crrtest.WebPod())
			if tc.request != nil {
				tc.request(r)
			}
			if tc.pod != nil {
				tc.pod(known.Pod)
			}
			if tc.observed != nil {
				tc.observed(&known)
			}
			if tc.code == 0 {
				tc.code = http.StatusBadRequest
			}
			_, err := admission.Admit(r, known)
			refused(t, err, tc.code, tc.field, tc.words...)
		})
	}
}

func strategy(s v1beta1.ContainerRecreateRequestStrategy) func(*v1beta1.ContainerRecreateRequest) {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Strategy = &s }
}

func grace(seconds int64) func(*v1beta1.ContainerRecreateRequest) {
	return strategy(v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: &seconds})
}

func drain(seconds int64) func(*v1beta1.ContainerRecreateRequest) {
	return strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: &seconds})
}

// The limits themselves are allowed, and one more is not.
func TestCheckRequestLimits(t *testing.T) {
	t.Parallel()
	names := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("c%d", i)
		}
		return list
	}
	for name, tt := range map[string]struct {
		change func(*v1beta1.ContainerRecreateRequest)
		ok     bool
	}{
		"256 containers": {func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.Containers = crrtest.UserRequest(names(256)...).Spec.Containers
		}, true},
		"257 containers": {func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.Containers = crrtest.UserRequest(names(257)...).Spec.Containers
		}, false},
		"deadline of 3 s": {func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = new(int64(3)) }, true},
		"the longest deadline": {func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.ActiveDeadlineSeconds = new(int64(v1beta1.MaxSeconds))
		}, true},
		"a longer deadline": {func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.ActiveDeadlineSeconds = new(int64(v1beta1.MaxSeconds) + 1)
		}, false},
		"deleted at once":    {func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = new(int32(0)) }, true},
		"the longest grace":  {grace(v1beta1.MaxSeconds), true},
		"a longer grace":     {grace(v1beta1.MaxSeconds + 1), false},
		"the longest drain":  {drain(v1beta1.MaxSeconds), true},
		"a longer drain":     {drain(v1beta1.MaxSeconds + 1), false},
		"Fail by name":       {strategy(v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Fail"}), true},
		"back-off skipped":   {annotate("refit.dev/restart-backoff", "skip"), true},
		"back-off left open": {annotate("refit.dev/restart-backoff", ""), false},
	} {
		r := crrtest.UserRequest("app")
		tt.change(r)
		if err := admission.CheckRequest(r); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pod with hundreds of containers does not make a message of hundreds of names.
func TestAdmitNamesTheContainersOfThePod(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{19: ", c18", 20: ", c19", 21: ", and 1 more", 300: ", and 280 more"} {
		pod := crrtest.WebPod()
		pod.Spec.Containers = nil
		for i := range n {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i)})
		}
		_, err := admission.Admit(crrtest.UserRequest("absent"), observed(pod))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d containers: %v, want …%s", n, err, want)
		}
	}
}

func TestAdmitUpdate(t *testing.T) {
	t.Parallel()
	type request = v1beta1.ContainerRecreateRequest
	completed := func(r *request) { r.Status.Phase = v1beta1.ContainerRecreateRequestCompleted }
	unlabel := func(key string) func(*request) { return func(r *request) { delete(r.Labels, key) } }
	for name, tc := range map[string]struct {
		before, after func(*request) // after is applied to the result of before
		field         string         // of the refusal, 403
	}{
		"nothing changed":               {},
		"a label of others":             {after: label("team", "b")},
		"finalizer removed":             {before: func(r *request) { r.Finalizers = []string{"f"} }, after: func(r *request) { r.Finalizers = nil }},
		"spec changed":                  {after: func(r *request) { r.Spec.PodName = "db" }, field: "spec"},
		"instance changed":              {after: func(r *request) { r.Spec.Containers[0].StatusContext = crrtest.StatusContext("app2", 0) }, field: "spec"},
		"another container":             {after: func(r *request) { r.Spec.Containers = crrtest.UserRequest("log").Spec.Containers }, field: "spec"},
		"pod UID changed":               {after: label("crr.apps.kruise.io/pod-uid", "uid-2"), field: "metadata.labels[crr.apps.kruise.io/pod-uid]"},
		"node removed":                  {after: unlabel("crr.apps.kruise.io/node-name"), field: "metadata.labels[crr.apps.kruise.io/node-name]"},
		"node added":                    {before: unlabel("crr.apps.kruise.io/node-name"), after: label("crr.apps.kruise.io/node-name", "node-2"), field: "metadata.labels[crr.apps.kruise.io/node-name]"},
		"active removed":                {after: unlabel("crr.apps.kruise.io/active"), field: "metadata.labels[crr.apps.kruise.io/active]"},
		"active turned off":             {after: label("crr.apps.kruise.io/active", "no"), field: "metadata.labels[crr.apps.kruise.io/active]"},
		"active removed once completed": {before: completed, after: unlabel("crr.apps.kruise.io/active")},
		"active removed while deleted": {
			before: func(r *request) { r.DeletionTimestamp = &metav1.Time{Time: crrtest.AdmittedAt} }, after: unlabel("crr.apps.kruise.io/active"),
		},
		"jumping the queue":      {after: annotate("refit.dev/admitted-at", "2000-01-01T00:00:00Z"), field: "metadata.annotations[refit.dev/admitted-at]"},
		"override afterwards":    {after: annotate("refit.dev/restart-policy", "override"), field: "metadata.annotations[refit.dev/restart-policy]"},
		"another requester":      {after: annotate("refit.dev/requested-by", "bob"), field: "metadata.annotations[refit.dev/requested-by]"},
		"back-off afterwards":    {after: annotate("refit.dev/restart-backoff", "respect"), field: "metadata.annotations[refit.dev/restart-backoff]"},
		"another reason":         {after: annotate("refit.dev/reason", "because"), field: "metadata.annotations[refit.dev/reason]"},
		"reason without a text":  {after: annotate("refit.dev/reason", ""), field: "metadata.annotations[refit.dev/reason]"},
		"active added":           {before: unlabel("crr.apps.kruise.io/active"), after: label("crr.apps.kruise.io/active", "true")},
		"drain begun":            {after: annotate(acquiredKey, acquired)},
		"anything after a drain": {before: annotate(acquiredKey, acquired), after: label("team", "b")},
		"drain forgotten":        {before: annotate(acquiredKey, acquired), after: func(r *request) { delete(r.Annotations, acquiredKey) }, field: "metadata.annotations[" + acquiredKey + "]"},
		"drain pretended longer": {before: annotate(acquiredKey, acquired), after: annotate(acquiredKey, "2000-01-01T00:00:00Z"), field: "metadata.annotations[" + acquiredKey + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := admission.Admit(crrtest.UserRequest("app"), observed(crrtest.WebPod()))
			if err != nil {
				t.Fatal(err)
			}
			if tc.before != nil {
				tc.before(before)
			}
			after := before.DeepCopy()
			if tc.after != nil {
				tc.after(after)
			}
			got, err := admission.AdmitUpdate(before, after)
			if tc.field != "" {
				refused(t, err, http.StatusForbidden, tc.field)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmpRequests(after, got); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdmitUpdateRefills sends the containers as kubectl apply does the second time.
func TestAdmitUpdateRefills(t *testing.T) {
	t.Parallel()
	before, err := admission.Admit(crrtest.UserRequest("app", "log"), observed(crrtest.WebPod()))
	if err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Spec.Containers = crrtest.UserRequest("app", "log").Spec.Containers
	got, err := admission.AdmitUpdate(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmpRequests(before, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}
