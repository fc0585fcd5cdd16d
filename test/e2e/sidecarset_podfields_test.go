package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// Pods get the service account and the process namespace that a SidecarSet asks for; whoever decides what runs with them needs a right
// that the right to write SidecarSets does not have.
func TestASidecarSetAsksForFieldsOfThePod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	user := "editor-of-" + s.namespace
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "refit-sidecarset-editor"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	s.check(s.Create(t.Context(), binding), "bind the role of editors")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTimeout)
		defer cancel()
		if err := s.Delete(ctx, binding); err != nil {
			t.Errorf("clean: %v", err)
		}
	})
	s.check(s.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "agent"}}), "make service account")
	asks := func(spec string) string {
		return strings.Replace(s.sidecarSetManifest("agent", spec), "metadata: {", "metadata: {annotations: {"+
			v1beta1.AnnotationSidecarSetServiceAccount+": agent, "+v1beta1.AnnotationSidecarSetShareProcesses+`: "true"}, `, 1)
	}
	const spec = "containers: [{name: agent, " + sleeper + "}]"
	as := "--as=" + user
	s.sidecarSet("agent", spec) // by the administrator, and removed after the test
	// The role was bound a moment ago.
	s.await("the editor to be known", func(ctx context.Context) (bool, error) {
		_, err := s.kubectl(ctx, "", "auth", "can-i", "update", "sidecarsets.apps.kruise.io", as)
		return err == nil, nil
	})
	refused := func(what, manifest string) {
		t.Helper()
		out, err := s.kubectl(t.Context(), manifest, "apply", "--server-side", "--force-conflicts", "--filename=-", as)
		if err == nil || !containsAll(out, []string{`inject serviceaccounts "agent"`, "share-process-namespace sidecarsets.apps.kruise.io", user}) {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
	refused("asked by an editor", asks(spec))
	out, err := s.kubectl(t.Context(), asks(spec), "apply", "--server-side", "--filename=-")
	s.check(err, "ask as administrator: %s", out)
	refused("another container", asks(strings.Replace(spec, "name: agent, ", "name: agent, args: [x], ", 1)))
	out, err = s.kubectl(t.Context(), "", "patch", "sidecarset", s.namespace+"-agent", "--type=merge", `--patch={"spec":{"updateStrategy":{"paused":true}}}`, as)
	s.check(err, "pause as editor: %s", out)

	pod := selected("agent", s.podOf("web", shell("app", obedient)))
	s.await("the webhook to know the annotations", func(ctx context.Context) (bool, error) {
		tried := pod.DeepCopy()
		err := s.Create(ctx, tried, client.DryRunAll)
		return err == nil && tried.Spec.ServiceAccountName == "agent" && tried.Spec.ShareProcessNamespace != nil, err
	})
	s.knows(pod, "agent")
	s.start(pod)
	if pod := s.pod("web"); pod.Spec.ServiceAccountName != "agent" || pod.Spec.DeprecatedServiceAccount != "agent" || !*pod.Spec.ShareProcessNamespace {
		t.Errorf("service account %q (%q), shareProcessNamespace %v", pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, pod.Spec.ShareProcessNamespace)
	}
	if seen := s.exec("web", "agent", "cat /proc/[0-9]*/cmdline"); !strings.Contains(seen, "trap") {
		t.Errorf("the sidecar does not see the processes of the application: %q", seen)
	}
}
