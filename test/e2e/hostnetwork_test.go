package e2e_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestHostNetworkPatch does as docs/install.md says, all but the last step: the other tests need the daemon as it is.
func TestHostNetworkPatch(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	manifest, err := os.ReadFile(root() + "/deploy/daemonset/daemonset.yaml")
	s.check(err, "read manifest")
	patched, err := s.kubectl(t.Context(), string(manifest), "patch", "--local", "--filename", "-",
		"--patch-file", root()+"/deploy/daemonset/host-network/patch.yaml", "--output", "yaml")
	s.check(err, "kubectl patch: %s", patched)
	var want, got appsv1.DaemonSet
	s.check(yaml.Unmarshal(manifest, &want), "decode manifest")
	s.check(yaml.Unmarshal([]byte(patched), &got), "decode patched manifest")
	want.Spec.Template.Spec.HostNetwork, want.Spec.Template.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
	daemon := &want.Spec.Template.Spec.Containers[0]
	daemon.Args = []string{"--addr=127.0.0.1:10221", "--metrics-addr=:10223"}
	daemon.LivenessProbe.HTTPGet.Host, daemon.ReadinessProbe.HTTPGet.Host = "127.0.0.1", "127.0.0.1"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DaemonSet (-want +got):\n%s", diff)
	}
	out, err := s.kubectl(t.Context(), patched, "apply", "--server-side", "--dry-run=server", "--filename", "-")
	s.check(err, "kubectl apply: %s", out)
}
