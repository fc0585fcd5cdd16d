package openkruise_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/cli/openkruise"
)

func managerWith(args ...string) *appsv1.Deployment {
	manager := &appsv1.Deployment{}
	manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Command: []string{"/manager"}, Args: args}}
	return manager
}

func TestFeatureGatesOfKruiseManager(t *testing.T) {
	t.Parallel()
	used := map[string]openkruise.Objects{}
	for _, kind := range []string{"SidecarSet", "PodProbeMarker", "ImagePullJob", "ImageListPullJob", "ContainerRecreateRequest"} {
		used[kind] = openkruise.Objects{Count: 1, Names: []string{"a"}}
	}
	const jobs = "ImagePullJobGate"
	for name, tc := range map[string]struct {
		args []string
		used map[string]openkruise.Objects
		want []string // gates, by what they are
	}{
		"by default":                  {used: used, want: []string{jobs + " off", jobs + " off"}},
		"without objects":             {},
		"jobs are carried out":        {args: []string{"--feature-gates=ImagePullJobGate=true"}, used: used},
		"two arguments":               {args: []string{"--feature-gates", "ImagePullJobGate=true"}, used: used},
		"an argument without a value": {args: []string{"--feature-gates"}, used: used, want: []string{jobs + " off", jobs + " off"}},
		"a flag after it":             {args: []string{"--feature-gates", "--ImagePullJobGate=true"}, used: used, want: []string{jobs + " off", jobs + " off"}},
		"a word after another":        {args: []string{"--v=1", "ImagePullJobGate=true"}, used: used, want: []string{jobs + " off", jobs + " off"}},
		"one dash":                    {args: []string{"-feature-gates=ImagePullJobGate=true"}, used: used},
		"another flag":                {args: []string{"--gates=ImagePullJobGate=true"}, used: used, want: []string{jobs + " off", jobs + " off"}},
		"not a flag":                  {args: []string{"feature-gates=ImagePullJobGate=true"}, used: used, want: []string{jobs + " off", jobs + " off"}},
		"what runs without use":       {args: []string{"--feature-gates=KruisePodReadinessGate=True, EnhancedLivenessProbe=true,ResourcesDeletionProtection=true"}, want: []string{"KruisePodReadinessGate on", "EnhancedLivenessProbe on", "ResourcesDeletionProtection on"}},
		"all alpha": {args: []string{"--feature-gates=AllAlpha=true"}, used: used, want: []string{
			"KruisePodReadinessGate on", "EnableSortSidecarContainerByName on", "EnablePodProbeMarkerOnServerless on", "EnhancedLivenessProbe on",
		}},
		"all alpha but one": {args: []string{"--feature-gates=AllAlpha=true,KruisePodReadinessGate=false"}, want: []string{"EnhancedLivenessProbe on"}},
		"all beta":          {args: []string{"--feature-gates=AllBeta=true,ImagePullJobGate=true"}, used: used, want: []string{"ResourcesDeletionProtection on"}},
		"no beta": {args: []string{"--feature-gates=AllBeta=false,ImagePullJobGate=true"}, used: used, want: []string{
			"PodProbeMarkerGate off", "KruiseDaemon off", "PodWebhook off",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range openkruise.OfGates(openkruise.Gates(managerWith(tc.args...)), tc.used) {
				state, _, _ := strings.Cut(strings.TrimPrefix(d.Differs, "it is "), ":")
				got = append(got, d.Name+" "+state)
				if d.Direction != openkruise.ToRefit || d.Do == "" {
					t.Errorf("%+v", d)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGateNamesTheObjectsThatAreNotCarriedOut(t *testing.T) {
	t.Parallel()
	used := map[string]openkruise.Objects{"PodProbeMarker": {Count: 2, Names: []string{"shop/a", "shop/b"}}}
	found := openkruise.OfGates(openkruise.Gates(managerWith("--feature-gates=PodProbeMarkerGate=false")), used)
	expect(t, found, []string{"it is off: PodProbeMarker, 2 objects: shop/a, shop/b; nothing carries them out now; Refit does"}, nil)
	if len(found) == 1 && !strings.Contains(found[0].Do, "manager.features.podProbes=false") {
		t.Errorf("%q", found[0].Do)
	}
}

func TestGatesAreNotKnownWithoutAKruiseManager(t *testing.T) {
	t.Parallel()
	if enabled := openkruise.Gates(nil); enabled != nil {
		t.Errorf("%v", enabled)
	}
	used := map[string]openkruise.Objects{"ImagePullJob": {Count: 1, Names: []string{"a"}}}
	if found := openkruise.OfGates(nil, used); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestFlagsOfKruiseDaemon(t *testing.T) {
	t.Parallel()
	const unlimited = "it pulls any number of images at a time; refit-daemon pulls 3, and up to 6 of several namespaces"
	for name, tc := range map[string]struct {
		args  []string
		pulls bool
		to    []string
	}{
		"no pulls":        {},
		"by default":      {pulls: true, to: []string{unlimited}},
		"without a limit": {args: []string{"--max-workers-for-pull-image=-1"}, pulls: true, to: []string{unlimited}},
		"five":            {args: []string{"--max-workers-for-pull-image=5"}, pulls: true, to: []string{"it pulls 5 images at a time; refit-daemon pulls 3, and up to 6 of several namespaces"}},
		"three":           {args: []string{"--max-workers-for-pull-image=3"}, pulls: true},
		"plugins":         {args: []string{"--plugin-config-file=/etc/plugins.yaml"}, to: []string{"it uses the credential provider plugins of /etc/plugins.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon := &appsv1.DaemonSet{}
			daemon.Namespace, daemon.Name = "kruise-system", "kruise-daemon"
			daemon.Spec.Template.Spec.Containers = []corev1.Container{{Args: tc.args}}
			expect(t, openkruise.OfDaemon(daemon, tc.pulls), tc.to, nil)
		})
	}
}

func TestWebhooksOfKruiseManagerAreInTheWayWhileTheyAreThere(t *testing.T) {
	t.Parallel()
	expect(t, openkruise.OfWebhooks("MutatingWebhookConfiguration", "kruise", 1),
		[]string{"its webhooks call kruise-manager: when that has been stopped, what they match, such as new pods, is refused"}, nil)
	expect(t, openkruise.OfWebhooks("MutatingWebhookConfiguration", "kruise", 0), nil, nil)
}
