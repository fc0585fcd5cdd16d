package probespec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/node/probespec"
)

func tcp(name string) v1alpha1.ContainerProbe {
	p := v1alpha1.ContainerProbe{Name: name, ContainerName: "app"}
	p.Probe.TCPSocket = &corev1.TCPSocketAction{}
	p.Probe.TCPSocket.Port.IntVal = 80
	return p
}

func entry(name, uid string, probes ...v1alpha1.ContainerProbe) v1alpha1.PodProbe {
	return v1alpha1.PodProbe{Namespace: "shop", Name: name, UID: uid, Probes: probes}
}

// many are n probes with different names.
func many(n int) []v1alpha1.ContainerProbe {
	probes := make([]v1alpha1.ContainerProbe, 0, n)
	for i := range n {
		probes = append(probes, tcp(fmt.Sprint("m#", i)))
	}
	return probes
}

func TestProbesThatCannotBeRunAreRefused(t *testing.T) {
	t.Parallel()
	invalid := tcp("m#invalid")
	invalid.Probe.TCPSocket.Host = "localhost"
	named, web := tcp("m#named"), tcp("m#web") // only the pod knows whether it has such a port
	named.Probe.TCPSocket.Port = intstr.FromString("game")
	web.Probe.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("game")}}
	for name, tc := range map[string]struct {
		entries []v1alpha1.PodProbe
		probes  int // of the pod with UID 1
		refused string
		errs    int
	}{
		"a probe":              {entries: []v1alpha1.PodProbe{entry("a", "1", tcp("m#x"))}, probes: 1},
		"ports by name":        {entries: []v1alpha1.PodProbe{entry("a", "1", named, web)}, probes: 2},
		"without a name":       {entries: []v1alpha1.PodProbe{entry("a", "1", tcp(""), tcp("m#x"))}, probes: 1, refused: "0 bytes", errs: 1},
		"longest name":         {entries: []v1alpha1.PodProbe{entry("a", "1", tcp(strings.Repeat("x", 512)))}, probes: 1},
		"too long a name":      {entries: []v1alpha1.PodProbe{entry("a", "1", tcp(strings.Repeat("x", 513)), tcp("m#x"))}, probes: 1, refused: "513 bytes", errs: 1},
		"name given twice":     {entries: []v1alpha1.PodProbe{entry("a", "1", tcp("m#x"), tcp("m#x"))}, probes: 1, refused: "given twice", errs: 1},
		"twice in two entries": {entries: []v1alpha1.PodProbe{entry("a", "1", tcp("m#x")), entry("a", "1", tcp("m#x"), tcp("m#y"))}, probes: 2, refused: "given twice", errs: 1},
		"UID of another pod":   {entries: []v1alpha1.PodProbe{entry("a", "1", tcp("m#x")), entry("b", "1", tcp("m#y"))}, probes: 1, refused: "shop/b has its UID too", errs: 1},
		"what cannot be run":   {entries: []v1alpha1.PodProbe{entry("a", "1", invalid, tcp("m#x"))}, probes: 1, refused: `probe "m#invalid": `, errs: 1},
		"as many as fit":       {entries: []v1alpha1.PodProbe{entry("a", "1", many(v1alpha1.MaxProbesOfPod)...)}, probes: v1alpha1.MaxProbesOfPod},
		"two more than fit":    {entries: []v1alpha1.PodProbe{entry("a", "1", many(v1alpha1.MaxProbesOfPod+2)...)}, probes: v1alpha1.MaxProbesOfPod, refused: "2 probes are left out", errs: 1},
		"more than a node has": {entries: append(full(), entry("a", "1", tcp("m#x"), tcp("m#y"), tcp("m#z"))), probes: 1, refused: "2 probes are left out", errs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := probespec.Read(v1alpha1.NodePodProbeSpec{PodProbes: tc.entries})["1"]
			if len(pod.Probes) != tc.probes || len(pod.Refused) != tc.errs || tc.errs > 0 && !strings.Contains(pod.Refused[0].Error(), tc.refused) {
				t.Errorf("%d probes, refused %q", len(pod.Probes), pod.Refused)
			}
			if pod.Key() != "shop/a" || pod.UID != "1" {
				t.Errorf("pod %s, UID %s", pod.Key(), pod.UID)
			}
		})
	}
}

// full are pods that leave room for one more probe on the node.
func full() []v1alpha1.PodProbe {
	var entries []v1alpha1.PodProbe
	for left := v1alpha1.MaxProbesOfNode - 1; left > 0; left -= v1alpha1.MaxProbesOfPod {
		name := fmt.Sprint("full-", left)
		entries = append(entries, entry(name, name, many(min(left, v1alpha1.MaxProbesOfPod))...))
	}
	return entries
}

func TestDefaultsOfOpenKruise(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given, period, failures int32
	}{"none given": {0, 1, 1}, "given": {7, 7, 7}} {
		p := tcp("m#x").Probe.Probe
		p.PeriodSeconds, p.FailureThreshold = tc.given, tc.given
		spec, err := probespec.Spec(p, probe.Place{Host: "192.0.2.1"})
		if err != nil || spec.Period != time.Duration(tc.period)*time.Second || spec.FailureThreshold != int(tc.failures) {
			t.Errorf("%s: every %s, %d failures, %v", name, spec.Period, spec.FailureThreshold, err)
		}
	}
}

func TestContainerOfAPod(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(9, 0))}}
	pod := &corev1.Pod{}
	pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Ports: []corev1.ContainerPort{{ContainerPort: 2}}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{ContainerPort: 1}}}, {Name: "new"}, {Name: "ended"}, {Name: "odd"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", ContainerID: "x://m", State: running}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", ContainerID: "x://a", State: running}, {Name: "ended", ContainerID: "x://e"}, {Name: "odd", State: running},
	}
	for name, want := range map[string]struct {
		found, running bool
		instance       string
		port           int32
	}{
		"app": {true, true, "x://a", 1}, "mesh": {true, true, "x://m", 2}, "new": {found: true}, "ended": {found: true, instance: "x://e"},
		"odd": {found: true}, "absent": {},
	} {
		c, found := probespec.ContainerOf(pod, name)
		var port int32
		for _, p := range c.Ports {
			port = p.ContainerPort
		}
		if found != want.found || c.Running != want.running || c.Instance != want.instance || port != want.port || c.StartedAt.IsZero() == want.running {
			t.Errorf("%s: %t %+v", name, found, c)
		}
	}
}

func TestAddressOfAPod(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "10.0.0.1": "10.0.0.1", "fd00:0::1": "fd00::1", "localhost": ""} {
		pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: given}}
		if got := probespec.Address(pod); got != want {
			t.Errorf("%q: %q", given, got)
		}
	}
}

func TestKindOfAProbe(t *testing.T) {
	t.Parallel()
	for want, handler := range map[string]corev1.ProbeHandler{
		"exec": {Exec: &corev1.ExecAction{}}, "http": {HTTPGet: &corev1.HTTPGetAction{}}, "tcp": {TCPSocket: &corev1.TCPSocketAction{}}, "grpc": {GRPC: &corev1.GRPCAction{}},
	} {
		p := corev1.Probe{ProbeHandler: handler}
		if got := probespec.Kind(p); got != want || probespec.NeedsAddress(p) != (want != "exec") {
			t.Errorf("%s: %s, needs an address: %t", want, got, probespec.NeedsAddress(p))
		}
	}
}

func TestFaultsOfAPodFitIntoAnEvent(t *testing.T) {
	t.Parallel()
	errs := []error{errors.New("one\xff"), errors.New("two"), errors.New("three"), errors.New("four"), errors.New("five")}
	for n, want := range map[int]string{1: "one\uFFFD", 3: "one\uFFFD; two; three", 5: "one\uFFFD; two; three; and 2 more"} {
		if got := probespec.Describe("shop/a", errs[:n]); got != "Not probing all of pod shop/a: "+want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
