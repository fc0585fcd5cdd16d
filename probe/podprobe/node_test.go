package podprobe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// probesToRun lists what a node is to probe as "pod marker#probe".
func probesToRun(spec v1alpha1.NodePodProbeSpec) []string {
	list := []string{}
	for _, pod := range spec.PodProbes {
		for _, probe := range pod.Probes {
			list = append(list, pod.Namespace+"/"+pod.Name+" "+probe.Name)
		}
	}
	return list
}

func TestNodeSpec(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	for name, tc := range map[string]struct {
		pods    []*corev1.Pod
		markers []v1alpha1.PodProbeMarker
		want    []string
	}{
		"no marker": {pods: []*corev1.Pod{pod("a")}},
		"ordered by pod and marker": {
			pods: []*corev1.Pod{pod("b"), pod("a")}, markers: []v1alpha1.PodProbeMarker{marker("second"), marker("first")},
			want: []string{"shop/a first#idle", "shop/a second#idle", "shop/b first#idle", "shop/b second#idle"},
		},
		"other namespace": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Namespace = "bank" })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"other labels": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Labels["app"] = "web" })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"not initialized": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"of which kubelet says nothing yet": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Conditions = nil })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"initialized, and not ready": {
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
				p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}, p.Status.Conditions...)
			})},
			markers: []v1alpha1.PodProbeMarker{marker("m")}, want: []string{"shop/a m#idle"},
		},
		"ended": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"succeeded": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"on no node": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Spec.NodeName = "" })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"init container with a policy of its own": {
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
				p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
				p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
			})}, markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"native sidecar beside another": {
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
				p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
				p.Spec.InitContainers[0].RestartPolicy = &always
				p.Spec.InitContainers[0].Name = "other"
			})}, markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"being deleted": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} })},
			markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"marker being deleted": {
			pods:    []*corev1.Pod{pod("a")},
			markers: []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) { m.DeletionTimestamp = &metav1.Time{Time: noon} })},
		},
		"no such container": {
			pods:    []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" }), pod("b")},
			markers: []v1alpha1.PodProbeMarker{marker("m")}, want: []string{"shop/b m#idle"},
		},
		"init container that has ended": {
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil })}, markers: []v1alpha1.PodProbeMarker{marker("m")},
		},
		"native sidecar": {
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
				p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
				p.Spec.InitContainers[0].RestartPolicy = &always
			})},
			markers: []v1alpha1.PodProbeMarker{marker("m")}, want: []string{"shop/a m#idle"},
		},
		"a faulty probe is left out, its neighbour is not": {
			pods: []*corev1.Pod{pod("a")},
			markers: []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) {
				bad := httpProbe("bad", intstr.FromInt32(80))
				bad.Probe.HTTPGet.Host = "169.254.169.254"
				m.Spec.Probes = append([]v1alpha1.PodContainerProbe{bad}, m.Spec.Probes...)
			})},
			want: []string{"shop/a m#idle"},
		},
		"a marker without a selector selects nothing": {
			pods: []*corev1.Pod{pod("a")}, markers: []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = &metav1.LabelSelector{} })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == nil {
				tc.want = []string{}
			}
			spec, left := specOf(t, tc.pods, compile(tc.markers...))
			if diff := cmp.Diff(tc.want, probesToRun(spec)); diff != "" || len(left) != 0 {
				t.Errorf("%v left out (-want +got):\n%s", left, diff)
			}
		})
	}
}

func TestNamedPortsAndAddressesAreFollowed(t *testing.T) {
	t.Parallel()
	markers := compile(marker("m", func(m *v1alpha1.PodProbeMarker) {
		tcp := httpProbe("tcp", intstr.IntOrString{})
		tcp.Probe.HTTPGet, tcp.Probe.TCPSocket = nil, &corev1.TCPSocketAction{Port: intstr.FromString("http")}
		m.Spec.Probes = []v1alpha1.PodContainerProbe{httpProbe("http", intstr.FromString("http")), tcp, httpProbe("gone", intstr.FromString("metrics"))}
	}))
	spec, _ := specOf(t, []*corev1.Pod{pod("a"), pod("b", func(p *corev1.Pod) {
		p.Status.PodIP = "10.0.0.2"
		p.Spec.Containers[0].Ports[0].ContainerPort = 9090
	})}, markers)
	if diff := cmp.Diff([]string{"shop/a m#http", "shop/a m#tcp", "shop/b m#http", "shop/b m#tcp"}, probesToRun(spec)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i, want := range []int{8080, 9090} {
		got := spec.PodProbes[i]
		if got.Probes[0].Probe.HTTPGet.Port.IntValue() != want || got.Probes[1].Probe.TCPSocket.Port.IntValue() != want {
			t.Errorf("pod %s: %+v, want port %d", got.Name, got.Probes, want)
		}
	}
	if spec.PodProbes[1].IP != "10.0.0.2" {
		t.Errorf("IP %s", spec.PodProbes[1].IP)
	}
}

// A name belongs to one marker, of one namespace: kruise-manager once took gateway's probes away with way's.
func TestDeletingWayLeavesGatewayAlone(t *testing.T) {
	t.Parallel()
	pods := []*corev1.Pod{pod("a"), pod("a", func(p *corev1.Pod) { p.Namespace, p.UID = "bank", "uid-bank" })}
	abroad := marker("way", func(m *v1alpha1.PodProbeMarker) { m.Namespace = "bank" })
	spec, _ := specOf(t, pods, compile(marker("gateway"), abroad))
	if diff := cmp.Diff([]string{"bank/a way#idle", "shop/a gateway#idle"}, probesToRun(spec)); diff != "" {
		t.Errorf("without shop/way (-want +got):\n%s", diff)
	}
}

func TestRemovedProbeIsTakenOut(t *testing.T) {
	t.Parallel()
	renamed := marker("m", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].Name = "free" })
	spec, _ := specOf(t, []*corev1.Pod{pod("a")}, compile(renamed))
	if diff := cmp.Diff([]string{"shop/a m#free"}, probesToRun(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod that is too large for the cache was read before, and only its probes are left.
func TestProbesThatAreKnownAreNotTakenFromThePod(t *testing.T) {
	t.Parallel()
	large, ended := pod("a"), pod("b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	markers := compile(marker("m"))
	known := map[types.UID]v1alpha1.PodProbe{"uid-a": podprobe.PodSpec(large, markers), "uid-b": podprobe.PodSpec(ended, markers)}
	large.Spec.Containers = nil
	want, _ := podprobe.NodeSpec([]*corev1.Pod{pod("a"), pod("c")}, markers, nil)
	got, _ := podprobe.NodeSpec([]*corev1.Pod{large, ended, pod("c")}, markers, known)
	if diff := cmp.Diff(want, got); diff != "" || len(got.PodProbes) != 2 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Probes that are too large for one object are refused to their owner, not to other namespaces.
func TestOneNamespaceDoesNotCrowdOutOthers(t *testing.T) {
	t.Parallel()
	greedy := marker("a-greedy", func(m *v1alpha1.PodProbeMarker) {
		m.Namespace, m.Spec.Probes = "a-tenant", nil
		for i := range 100 {
			p := probe(fmt.Sprintf("p%d", i))
			p.Probe.Exec.Command = []string{strings.Repeat("x", 16<<10)}
			m.Spec.Probes = append(m.Spec.Probes, p)
		}
	})
	pods := []*corev1.Pod{pod("modest")}
	for i := range 20 {
		pods = append(pods, pod(fmt.Sprintf("greedy-%d", i), func(p *corev1.Pod) { p.Namespace = "a-tenant" }))
	}
	spec, left := specOf(t, pods, compile(greedy, marker("m")))
	if len(left) != 20 || len(spec.PodProbes) != 1 || spec.PodProbes[0].Name != "modest" {
		t.Errorf("%v left out, probed %v", left, probesToRun(spec))
	}
	for _, p := range left {
		if p == nil || p.Namespace != "a-tenant" {
			t.Errorf("left out: %+v", p)
		}
	}
}
