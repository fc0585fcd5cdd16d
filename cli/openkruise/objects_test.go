package openkruise_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

func object(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

func TestRequestsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: object("r")}
	expect(t, openkruise.OfRequest(request), []string{"it is under way: refit-daemon goes on with it, and counts from then on"},
		[]string{"it is under way: kruise-daemon goes on with it, and may stop containers again that are Pending"})
	request.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	expect(t, openkruise.OfRequest(request), nil, nil)
}

func TestPullsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	const (
		underWay = "its pulls are under way: the other manager goes on with them, and nodes may pull images again"
		secrets  = "refit-manager may not read the pull secrets of its namespace, and waits for them"
		text     = "parallelism is a text, which Refit refuses when the object is written"
		timeout  = "pullPolicy.timeoutSeconds is less than 1, which Refit refuses when the object is written"
	)
	for name, tc := range map[string]struct {
		template v1beta1.ImagePullJobTemplate
		ended    bool
		readable bool
		to, from []string
	}{
		"under way":                {to: []string{underWay}, from: []string{underWay}},
		"ended":                    {template: v1beta1.ImagePullJobTemplate{PullSecrets: []string{"a"}}, ended: true},
		"that never end":           {template: v1beta1.ImagePullJobTemplate{CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}}},
		"with secrets":             {template: v1beta1.ImagePullJobTemplate{PullSecrets: []string{"a"}}, to: []string{underWay, secrets}, from: []string{underWay}},
		"with secrets that it may": {template: v1beta1.ImagePullJobTemplate{PullSecrets: []string{"a"}}, readable: true, to: []string{underWay}, from: []string{underWay}},
		"with a text": {template: v1beta1.ImagePullJobTemplate{Parallelism: new(intstr.FromString("10")), CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}},
			to: []string{text}},
		"without time": {template: v1beta1.ImagePullJobTemplate{PullPolicy: &v1beta1.PullPolicy{TimeoutSeconds: new(int32(0))}, CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}},
			to: []string{timeout}},
		"with time":     {template: v1beta1.ImagePullJobTemplate{PullPolicy: &v1beta1.PullPolicy{TimeoutSeconds: new(int32(1))}, CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}}},
		"with a number": {template: v1beta1.ImagePullJobTemplate{Parallelism: new(intstr.FromInt32(10)), CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &v1beta1.ImagePullJob{ObjectMeta: object("j"), Spec: v1beta1.ImagePullJobSpec{ImagePullJobTemplate: tc.template}}
			list := &v1beta1.ImageListPullJob{ObjectMeta: object("l"), Spec: v1beta1.ImageListPullJobSpec{ImagePullJobTemplate: tc.template}}
			if tc.ended {
				job.Status.CompletionTime, list.Status.CompletionTime = &metav1.Time{Time: now}, &metav1.Time{Time: now}
			}
			expect(t, openkruise.OfJob(job, tc.readable), tc.to, tc.from)
			expect(t, openkruise.OfList(list, tc.readable), tc.to, tc.from)
			if needs := openkruise.NeedsSecrets(&tc.template, tc.ended); needs != (len(tc.template.PullSecrets) > 0 && !tc.ended) {
				t.Errorf("needs secrets: %t", needs)
			}
		})
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	const network = "refit-daemon connects from the pod network, and NetworkPolicies of the namespace restrict ingress; kruise-daemon connects from the node"
	grpc := corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}}
	tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	get := func(path string, scheme corev1.URIScheme) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Path: path, Scheme: scheme}}
	}
	const incomplete = "the httpGet of its probe p has no path, or no scheme: OpenKruise refuses it when the marker is written"
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	for name, tc := range map[string]struct {
		handler   corev1.ProbeHandler
		condition string
		guarded   bool
		to, from  []string
	}{
		"exec":                         {handler: exec, guarded: true},
		"tcp":                          {handler: tcp},
		"tcp beside NetworkPolicies":   {handler: tcp, guarded: true, to: []string{network}},
		"http beside NetworkPolicies":  {handler: get("/", "HTTP"), guarded: true, to: []string{network}},
		"http without a path":          {handler: get("", "HTTP"), from: []string{incomplete}},
		"http without a scheme":        {handler: get("/", ""), from: []string{incomplete}},
		"grpc":                         {handler: grpc, from: []string{"its probe p is a grpc probe: OpenKruise refuses it when the marker is written, and does not run it"}},
		"condition that is not theirs": {handler: exec, condition: "Ready", to: []string{"Refit does not accept it: spec.probes[0].podConditionType"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := &v1alpha1.PodProbeMarker{ObjectMeta: object("m")}
			marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			condition := "example.com/ready"
			if tc.condition != "" {
				condition = tc.condition
			}
			marker.Spec.Probes = []v1alpha1.PodContainerProbe{{Name: "p", ContainerName: "app", PodConditionType: condition, Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: tc.handler}}}}
			found := openkruise.OfMarker(marker, tc.guarded)
			for i := range found {
				if cut, _, more := strings.Cut(found[i].Differs, ": Invalid"); more {
					found[i].Differs = cut
				}
			}
			expect(t, found, tc.to, tc.from)
		})
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	const env = "refit-daemon does not read the environment of containers from docker: changed labels and annotations restart none, and workloads of OpenKruise wait for that"
	for name, tc := range map[string]struct {
		kubelet, runtime string
		to               []string
	}{
		"containerd":   {kubelet: "v1.36.3", runtime: "containerd://2.4.2"},
		"CRI-O":        {kubelet: "v1.31.0", runtime: "cri-o://1.31.0"},
		"docker":       {kubelet: "v1.36.3", runtime: "docker://27.0.0", to: []string{env}},
		"not reported": {},
		"kubelet 1.30": {kubelet: "v1.30.4", runtime: "containerd://1.7.0",
			to: []string{"its kubelet v1.30.4 has a container hash that SidecarSets of Refit do not compare: a sidecar counts as updated a minute after it is ready"}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.ContainerRuntimeVersion = tc.kubelet, tc.runtime
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, openkruise.OfNode(node), tc.to, nil)
		})
	}
}

func TestDisruptionBudgetThatAllowsNothing(t *testing.T) {
	t.Parallel()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: object("b")}
	expect(t, openkruise.OfDisruptionBudget(budget), nil, nil)
	budget.Status.ExpectedPods = 3
	expect(t, openkruise.OfDisruptionBudget(budget), []string{"it allows no disruption now: Refit does not stop sidecars of its pods, OpenKruise does not ask it"}, nil)
	budget.Status.DisruptionsAllowed = 1
	expect(t, openkruise.OfDisruptionBudget(budget), nil, nil)
	if clusterOf().Rolled() || !clusterOf(newSet()).Rolled() ||
		clusterOf(newSet(func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate })).Rolled() {
		t.Error("wrong about what is rolled out")
	}
}

func TestCopiesOfPullSecrets(t *testing.T) {
	t.Parallel()
	expect(t, openkruise.OfSecretCopies("kruise-daemon-config", 0), nil, nil)
	expect(t, openkruise.OfSecretCopies("kruise-daemon-config", 2), nil, []string{"copies of pull secrets that refit-manager has made: kruise-manager does not remove them"})
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	const gate = "its label refit.dev/readiness-gate has no effect: new pods do not get the readiness gate KruisePodReady, and are not taken out of their Services before a restart"
	for name, tc := range map[string]struct {
		labels map[string]string
		flags  []string
		from   []string
	}{
		"without labels":                  {},
		"with readiness gates":            {labels: map[string]string{v1beta1.LabelReadinessGate: "enabled"}, from: []string{gate}},
		"with readiness gates everywhere": {labels: map[string]string{v1beta1.LabelReadinessGate: "enabled"}, flags: []string{"--feature-gates=KruisePodReadinessGate=true"}},
		"without readiness gates":         {labels: map[string]string{v1beta1.LabelReadinessGate: "disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clusterOf()
			c.Gates = openkruise.Gates(managerWith(tc.flags...))
			expect(t, c.OfNamespace("shop", tc.labels), nil, tc.from)
		})
	}
}
