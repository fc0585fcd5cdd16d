package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestHostNetworkPatch is about what the patch makes of the DaemonSet, without doing it: the other tests need the daemon.
func TestHostNetworkPatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	patch := func(args ...string) *appsv1.DaemonSet {
		args = append([]string{"--namespace", "refit-system", "--output", "json"}, args...)
		out, err := s.kubectl(t.Context(), "", args...)
		s.check(err, "kubectl %q: %s", args, out)
		var daemons appsv1.DaemonSet
		s.check(json.Unmarshal([]byte(out), &daemons), "decode DaemonSet")
		return &daemons
	}
	before := patch("get", "daemonset", "refit-daemon").Spec.Template.Spec
	after := patch("patch", "daemonset", "refit-daemon", "--dry-run=server",
		"--patch-file", root()+"/deploy/daemonset/host-network/patch.yaml").Spec.Template.Spec
	want := *before.DeepCopy()
	want.HostNetwork, want.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
	daemon := &want.Containers[0]
	daemon.Args = []string{"--addr=127.0.0.1:10221", "--metrics-addr=:10223"}
	daemon.LivenessProbe.HTTPGet.Host, daemon.ReadinessProbe.HTTPGet.Host = "127.0.0.1", "127.0.0.1"
	daemon.Ports = after.Containers[0].Ports // whether host ports are filled in here or in the pods depends on the version
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("pods of the daemon (-want +got):\n%s", diff)
	}
}
