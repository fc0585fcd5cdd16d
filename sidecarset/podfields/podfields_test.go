package podfields_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/podfields"
)

const (
	accountOf = "sidecarset.refit.dev/service-account: "
	shared    = `sidecarset.refit.dev/share-process-namespace: "true"`
)

func sidecarSet(t *testing.T, name string, annotations ...string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{}
	text := fmt.Sprintf("metadata: {name: %s, annotations: {%s}}\nspec: {selector: {matchLabels: {app: web}}, containers: [{name: %[1]s, image: a:1}]}", name, strings.Join(annotations, ", "))
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return set
}

// injected is a pod with the given spec after the injection of SidecarSets, and the warnings.
func injected(t *testing.T, spec string, sets ...*v1beta1.SidecarSet) (corev1.PodSpec, []string) {
	t.Helper()
	raw := []byte(`{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:1"}],"automountServiceAccountToken":false` + spec + `}}`)
	var plan inject.Plan
	var candidates []*choice.Candidate
	for _, set := range sets {
		compiled, err := inject.Compile(set, "")
		if err != nil {
			t.Fatal(err)
		}
		plan.Sets = append(plan.Sets, compiled)
		candidates = append(candidates, &choice.Candidate{SidecarSet: set, Latest: compiled})
	}
	candidates = append(candidates, &choice.Candidate{SidecarSet: sidecarSet(t, "skipped", accountOf+"skipped")})
	result, err := podfields.Inject(raw, plan, candidates, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err == nil && len(patch) > 0 {
		raw, err = patch.Apply(raw)
	}
	var pod corev1.Pod
	if err == nil {
		err = json.Unmarshal(raw, &pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pod.Spec, result.Warnings
}

func TestPodsGetTheServiceAccountAndTheProcessNamespaceThatAreAskedFor(t *testing.T) {
	t.Parallel()
	agent, plain := sidecarSet(t, "agent", accountOf+"agent", shared), sidecarSet(t, "plain")
	for name, tc := range map[string]struct {
		spec    string
		sets    []*v1beta1.SidecarSet
		account string
		old     string // the old name of the field
		share   *bool
		warned  string
	}{
		"nothing asked for":         {spec: `,"serviceAccountName":"default"`, sets: []*v1beta1.SidecarSet{plain}, account: "default"},
		"no account":                {sets: []*v1beta1.SidecarSet{agent}, account: "agent", share: new(true)},
		"the default one":           {spec: `,"serviceAccountName":"default","serviceAccount":"default"`, sets: []*v1beta1.SidecarSet{plain, agent}, account: "agent", old: "agent", share: new(true)},
		"the same":                  {spec: `,"serviceAccountName":"agent","shareProcessNamespace":true`, sets: []*v1beta1.SidecarSet{agent}, account: "agent", share: new(true)},
		"an account of the pod":     {spec: `,"serviceAccountName":"web"`, sets: []*v1beta1.SidecarSet{agent}, account: "web", share: new(true), warned: "SidecarSet agent asks for service account agent; the pod keeps web"},
		"by its old name":           {spec: `,"serviceAccount":"web"`, sets: []*v1beta1.SidecarSet{agent}, old: "web", share: new(true), warned: "the pod keeps web"},
		"processes kept apart":      {spec: `,"shareProcessNamespace":false`, sets: []*v1beta1.SidecarSet{agent}, account: "agent", share: new(false), warned: "shareProcessNamespace: false"},
		"processes of the host":     {spec: `,"hostPID":true`, sets: []*v1beta1.SidecarSet{agent}, account: "agent", warned: "hostPID"},
		"two that ask for the same": {sets: []*v1beta1.SidecarSet{agent, sidecarSet(t, "b", accountOf+"agent", shared)}, account: "agent", share: new(true)},
		"two that ask for others":   {sets: []*v1beta1.SidecarSet{agent, sidecarSet(t, "b", accountOf+"b")}, account: "agent", share: new(true), warned: "SidecarSet b asks for service account b; the pod keeps agent"},
		"a token for all":           {spec: `,"automountServiceAccountToken":true`, sets: []*v1beta1.SidecarSet{agent}, account: "agent", share: new(true), warned: "set automountServiceAccountToken: false"},
		"a token by default":        {spec: `,"automountServiceAccountToken":null`, sets: []*v1beta1.SidecarSet{agent}, account: "agent", share: new(true), warned: "set automountServiceAccountToken: false"},
		"said to be false":          {sets: []*v1beta1.SidecarSet{sidecarSet(t, "a", `sidecarset.refit.dev/share-process-namespace: "false"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, warnings := injected(t, tc.spec, tc.sets...)
			if spec.ServiceAccountName != tc.account || spec.DeprecatedServiceAccount != tc.old {
				t.Errorf("service account %q and %q, want %q and %q", spec.ServiceAccountName, spec.DeprecatedServiceAccount, tc.account, tc.old)
			}
			if diff := cmp.Diff(tc.share, spec.ShareProcessNamespace); diff != "" {
				t.Errorf("shareProcessNamespace (-want +got):\n%s", diff)
			}
			if said := strings.Join(warnings, "\n"); (said == "") != (tc.warned == "") || !strings.Contains(said, tc.warned) {
				t.Errorf("warnings %q, want %q", said, tc.warned)
			}
			if want := 1 + len(tc.sets); len(spec.Containers) != want {
				t.Errorf("%d containers, want %d", len(spec.Containers), want)
			}
		})
	}
}

func TestAPodThatIsRefusedForItsContainersIsRefused(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, "agent", shared)
	compiled, err := inject.Compile(set, "")
	if err != nil {
		t.Fatal(err)
	}
	clash := []byte(`{"metadata":{"name":"web"},"spec":{"containers":[{"name":"agent","image":"other:1"}]}}`)
	if _, err := podfields.Inject(clash, inject.Plan{Sets: []*inject.Set{compiled}}, nil, time.Now()); err == nil {
		t.Error("the pod has another container of that name")
	}
}

func TestWhatIsAskedForIsChecked(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]string{
		accountOf + "agent": "", shared: "",
		accountOf + `""`:       "metadata.annotations[sidecarset.refit.dev/service-account]",
		accountOf + "An_agent": "metadata.annotations[sidecarset.refit.dev/service-account]",
		"sidecarset.refit.dev/share-process-namespace: yes please": "metadata.annotations[sidecarset.refit.dev/share-process-namespace]",
	} {
		errs := podfields.Check(sidecarSet(t, "agent", annotation))
		if len(errs) > 0 != (want != "") || want != "" && errs[0].Field != want {
			t.Errorf("%s: %v", annotation, errs)
		}
	}
	a, b := sidecarSet(t, "a", accountOf+"a"), sidecarSet(t, "b", accountOf+"b")
	if err := podfields.Clash(a, b); err == nil || !strings.Contains(err.Error(), "SidecarSet b, which can select the same pods, asks for service account b") {
		t.Errorf("two accounts: %v", err)
	}
	for _, other := range []*v1beta1.SidecarSet{sidecarSet(t, "c", accountOf+"a"), sidecarSet(t, "d", shared)} {
		if err := podfields.Clash(a, other); err != nil {
			t.Errorf("beside %s: %v", other.Name, err)
		}
		if err := podfields.Clash(other, a); err != nil {
			t.Errorf("%s beside: %v", other.Name, err)
		}
	}
}

func TestWhoeverDecidesWhatRunsWithTheAccountNeedsTheRight(t *testing.T) {
	t.Parallel()
	both := func(change ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
		set := sidecarSet(t, "agent", accountOf+"agent", shared)
		for _, c := range change {
			c(set)
		}
		return set
	}
	const inject, share = `inject serviceaccounts "agent"`, `share-process-namespace sidecarsets.apps.kruise.io "agent"`
	for name, tc := range map[string]struct {
		set, old *v1beta1.SidecarSet
		want     []string
	}{
		"nothing asked for": {set: sidecarSet(t, "agent")},
		"created":           {set: both(), want: []string{inject, share}},
		"one":               {set: sidecarSet(t, "agent", shared), want: []string{share}},
		"added":             {set: both(), old: sidecarSet(t, "agent", shared), want: []string{inject, share}},
		"removed":           {set: sidecarSet(t, "agent"), old: both()},
		"another account":   {set: both(), old: both(func(s *v1beta1.SidecarSet) { s.Annotations[v1beta1.AnnotationSidecarSetServiceAccount] = "b" }), want: []string{inject, share}},
		"another image":     {set: both(func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Image = "b:1" }), old: both(), want: []string{inject, share}},
		"more pods":         {set: both(func(s *v1beta1.SidecarSet) { s.Spec.Selector.MatchLabels = nil }), old: both(), want: []string{inject, share}},
		"another revision": {set: both(func(s *v1beta1.SidecarSet) {
			s.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: new("r")}
		}), old: both(), want: []string{inject, share}},
		"paused": {set: both(func(s *v1beta1.SidecarSet) {
			s.Spec.InjectionStrategy.Paused, s.Spec.UpdateStrategy.Paused = true, true
		}), old: both()},
		"a label":    {set: both(func(s *v1beta1.SidecarSet) { s.Labels = map[string]string{"a": "b"} }), old: both()},
		"unchanged":  {set: both(), old: both()},
		"a rollout":  {set: both(func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.MinReadySeconds = 5 }), old: both()},
		"for nobody": {set: sidecarSet(t, "agent", `sidecarset.refit.dev/share-process-namespace: "false"`)},
	} {
		var got []string
		for _, right := range podfields.Rights(tc.set, tc.old) {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(right.Error("bob").Detail, "it needs the right to "), ` in the whole cluster, which "bob" does not have`))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
