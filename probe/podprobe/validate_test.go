package podprobe_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	first := func(edit func(*v1alpha1.PodContainerProbe)) func(*v1alpha1.PodProbeMarker) {
		return func(m *v1alpha1.PodProbeMarker) { edit(&m.Spec.Probes[0]) }
	}
	handler := func(h corev1.ProbeHandler) func(*v1alpha1.PodProbeMarker) {
		return first(func(p *v1alpha1.PodContainerProbe) { p.Probe.ProbeHandler = h })
	}
	policy := func(labels, annotations map[string]string) func(*v1alpha1.PodProbeMarker) {
		return first(func(p *v1alpha1.PodContainerProbe) {
			p.MarkerPolicy[0].Labels, p.MarkerPolicy[0].Annotations = labels, annotations
		})
	}
	get := func(edit func(*corev1.HTTPGetAction)) func(*v1alpha1.PodProbeMarker) {
		h := &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}
		edit(h)
		return handler(corev1.ProbeHandler{HTTPGet: h})
	}
	const p0 = "spec.probes[0]."
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.PodProbeMarker)
		want []string // fields at fault
	}{
		"valid":        {edit: func(*v1alpha1.PodProbeMarker) {}},
		"grpc":         {edit: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}})},
		"grpc service": {edit: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: new(strings.Repeat("s", 4<<10))}})},
		"grpc service too long": {
			edit: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: new(strings.Repeat("s", 4<<10+1))}}),
			want: []string{p0 + "probe.grpc.service"},
		},
		"path":          {edit: get(func(h *corev1.HTTPGetAction) { h.Path = strings.Repeat("p", 2<<10) })},
		"path too long": {edit: get(func(h *corev1.HTTPGetAction) { h.Path = strings.Repeat("p", 2<<10+1) }), want: []string{p0 + "probe.httpGet.path"}},
		"longest times": {edit: first(func(p *v1alpha1.PodContainerProbe) { p.Probe.TimeoutSeconds, p.Probe.PeriodSeconds = 3600, 86400 })},
		"longer times": {
			edit: first(func(p *v1alpha1.PodContainerProbe) { p.Probe.TimeoutSeconds, p.Probe.PeriodSeconds = 3601, 86401 }),
			want: []string{p0 + "probe.timeoutSeconds", p0 + "probe.periodSeconds"},
		},
		"longest delay and thresholds": {edit: first(func(p *v1alpha1.PodContainerProbe) {
			p.Probe.InitialDelaySeconds, p.Probe.SuccessThreshold, p.Probe.FailureThreshold = 86400, 1000, 1000
		})},
		"longer delay and thresholds": {edit: first(func(p *v1alpha1.PodContainerProbe) {
			p.Probe.InitialDelaySeconds, p.Probe.SuccessThreshold, p.Probe.FailureThreshold = 86401, 1001, 1001
		}), want: []string{p0 + "probe.initialDelaySeconds", p0 + "probe.successThreshold", p0 + "probe.failureThreshold"}},
		"keys of others": {
			edit: policy(map[string]string{"pod-template-generation": "", "controller-revision-hash": ""}, map[string]string{"refit.dev/a": "", "x.k8s.io/b": "", "k8s.io/c": ""}),
			want: []string{
				p0 + "markerPolicy[0].annotations[k8s.io/c]", p0 + "markerPolicy[0].annotations[refit.dev/a]", p0 + "markerPolicy[0].annotations[x.k8s.io/b]",
				p0 + "markerPolicy[0].labels[controller-revision-hash]", p0 + "markerPolicy[0].labels[pod-template-generation]",
			},
		},
		"a key of the descheduler for users": {edit: policy(nil, map[string]string{"descheduler.alpha.kubernetes.io/evict": "true"})},
		"two probes without a condition": {edit: func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, probe("b"))
			m.Spec.Probes[0].PodConditionType, m.Spec.Probes[1].PodConditionType = "", ""
		}},
		"longest headers": {edit: get(func(h *corev1.HTTPGetAction) {
			h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a", Value: strings.Repeat("x", 4<<10-1)}}
		})},
		"longer headers": {edit: get(func(h *corev1.HTTPGetAction) {
			h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a", Value: strings.Repeat("x", 4<<10)}}
		}), want: []string{p0 + "probe.httpGet.httpHeaders"}},
		"key of the selector's expression": {edit: func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}
			m.Spec.Probes[0].MarkerPolicy[0].Labels = map[string]string{"tier": "x"}
		}, want: []string{p0 + "markerPolicy[0].labels[tier]"}},
		"no name":                {edit: first(func(p *v1alpha1.PodContainerProbe) { p.Name = "" }), want: []string{p0 + "name"}},
		"longest name":           {edit: first(func(p *v1alpha1.PodContainerProbe) { p.Name = strings.Repeat("n", 253) })},
		"name too long":          {edit: first(func(p *v1alpha1.PodContainerProbe) { p.Name = strings.Repeat("n", 254) }), want: []string{p0 + "name"}},
		"condition of two words": {edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "a b" }), want: []string{p0 + "podConditionType"}},
		"result that nobody sees": {
			edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType, p.MarkerPolicy = "", nil }), want: []string{"spec.probes[0]"},
		},
		"condition alone": {edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType, p.MarkerPolicy = idle, nil })},
		"other state":     {edit: first(func(p *v1alpha1.PodContainerProbe) { p.MarkerPolicy[0].State = "Unknown" }), want: []string{p0 + "markerPolicy[0].state"}},
		"grpc port 0":     {edit: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}), want: []string{p0 + "probe.grpc.port"}},
		"no command":      {edit: handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{}}), want: []string{p0 + "probe.exec.command"}},
		"header that says how long the body is": {
			edit: get(func(h *corev1.HTTPGetAction) {
				h.HTTPHeaders = []corev1.HTTPHeader{{Name: "content-length", Value: "5"}}
			}),
			want: []string{p0 + "probe.httpGet.httpHeaders[0]"},
		},
		"key below a reserved domain": {
			edit: policy(nil, map[string]string{"node.kubernetes.io/a": ""}), want: []string{p0 + "markerPolicy[0].annotations[node.kubernetes.io/a]"},
		},
		"label of the controller of Jobs": {
			edit: policy(map[string]string{"job-name": "a"}, nil), want: []string{p0 + "markerPolicy[0].labels[job-name]"},
		},
		"label of Jobs before Kubernetes 1.27": {
			edit: policy(map[string]string{"controller-uid": "a"}, nil), want: []string{p0 + "markerPolicy[0].labels[controller-uid]"},
		},
		"state twice": {
			edit: first(func(p *v1alpha1.PodContainerProbe) { p.MarkerPolicy[1].State = p.MarkerPolicy[0].State }),
			want: []string{p0 + "markerPolicy[1].state"},
		},
		"http without scheme": {edit: get(func(*corev1.HTTPGetAction) {})},
		"no selector":         {edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = nil }, want: []string{"spec.selector"}},
		"empty selector":      {edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = &metav1.LabelSelector{} }, want: []string{"spec.selector"}},
		"selector's value":    {edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector.MatchLabels["app"] = "a b" }, want: []string{"spec.selector.matchLabels"}},
		"all faults at once": {
			edit: first(func(p *v1alpha1.PodContainerProbe) {
				p.Name, p.ContainerName, p.Probe.ProbeHandler, p.Probe.PeriodSeconds = "a#b", "A", corev1.ProbeHandler{}, -1
			}),
			want: []string{p0 + "name", p0 + "containerName", p0 + "probe", p0 + "probe.periodSeconds"},
		},
		"name twice": {edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = append(m.Spec.Probes, probe("idle")) }, want: []string{"spec.probes[1].name"}},
		"condition twice": {edit: func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, probe("b"))
			m.Spec.Probes[1].PodConditionType = idle
		}, want: []string{"spec.probes[1].podConditionType"}},
		"host":                {edit: get(func(h *corev1.HTTPGetAction) { h.Host = "10.96.0.1" }), want: []string{p0 + "probe.httpGet.host"}},
		"port 0":              {edit: handler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}), want: []string{p0 + "probe.tcpSocket.port"}},
		"port's name":         {edit: handler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("80")}}), want: []string{p0 + "probe.tcpSocket.port"}},
		"scheme":              {edit: get(func(h *corev1.HTTPGetAction) { h.Scheme = "gopher" }), want: []string{p0 + "probe.httpGet.scheme"}},
		"header's name":       {edit: get(func(h *corev1.HTTPGetAction) { h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a b"}} }), want: []string{p0 + "probe.httpGet.httpHeaders[0].name"}},
		"header of two lines": {edit: get(func(h *corev1.HTTPGetAction) { h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a", Value: "b\r\nc: d"}} }), want: []string{p0 + "probe.httpGet.httpHeaders[0]"}},
		"headers too long": {edit: get(func(h *corev1.HTTPGetAction) {
			h.HTTPHeaders = []corev1.HTTPHeader{{Name: "a", Value: strings.Repeat(filler, 40)}, {Name: "b", Value: strings.Repeat(filler, 40)}}
		}), want: []string{p0 + "probe.httpGet.httpHeaders"}},
		"command too long":      {edit: handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{strings.Repeat(filler, 300)}}}), want: []string{p0 + "probe.exec.command"}},
		"native condition":      {edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "ContainersReady" }), want: []string{p0 + "podConditionType"}},
		"condition of Jobs":     {edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = v1beta1.ConditionSidecarTerminated }), want: []string{p0 + "podConditionType"}},
		"condition of sidecars": {edit: first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = v1beta1.ConditionSidecarSetUpgradable }), want: []string{p0 + "podConditionType"}},
		"probe named Ready":     {edit: first(func(p *v1alpha1.PodContainerProbe) { p.Name = "Ready" })},
		"label's value":         {edit: policy(map[string]string{"a": "b c"}, nil), want: []string{p0 + "markerPolicy[0].labels"}},
		"annotation's key":      {edit: policy(nil, map[string]string{"a b": ""}), want: []string{p0 + "markerPolicy[0].annotations"}},
		"nothing to mark":       {edit: policy(nil, nil), want: []string{p0 + "markerPolicy[0]"}},
		"key of the selector":   {edit: policy(map[string]string{"app": "other"}, nil), want: []string{p0 + "markerPolicy[0].labels[app]"}},
		"key of kubelet":        {edit: policy(nil, map[string]string{"kubernetes.io/config.mirror": ""}), want: []string{p0 + "markerPolicy[0].annotations[kubernetes.io/config.mirror]"}},
		"key of the protocol":   {edit: policy(nil, map[string]string{"kruise.io/podprobe": "[]"}), want: []string{p0 + "markerPolicy[0].annotations[kruise.io/podprobe]"}},
		"key of a ReplicaSet":   {edit: policy(map[string]string{"pod-template-hash": "1"}, nil), want: []string{p0 + "markerPolicy[0].labels[pod-template-hash]"}},
		"switches for users":    {edit: policy(map[string]string{"apps.kruise.io/specified-delete": "true", "app.kubernetes.io/version": "2"}, map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "game.kruise.io/state": "x", cost: "1"})},
		"domain that ends like": {edit: policy(map[string]string{"notkubernetes.io/a": "b"}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := marker("m", tc.edit)
			var got []string
			for _, fault := range compile(m)[0].Errors {
				got = append(got, fault.Field)
			}
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("errors %v, want the errors of %q", compile(m)[0].Errors, tc.want)
			}
		})
	}
}

func TestTooManyProbesAreOneFault(t *testing.T) {
	t.Parallel()
	m := marker("m", func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Probes = make([]v1alpha1.PodContainerProbe, 0, 10000)
		for i := range 10000 {
			p := probe("p" + strings.Repeat("x", i%200) + string(rune('a'+i/200%26)))
			p.PodConditionType = ""
			m.Spec.Probes = append(m.Spec.Probes, p)
		}
	})
	if errs := compile(m)[0].Errors; len(errs) != 1 || errs[0].Field != "spec.probes" {
		t.Errorf("%v", errs)
	}
}
