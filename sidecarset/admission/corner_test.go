package admission_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/admission"
)

// verdict is what Check says of a SidecarSet, or of its change.
func verdict(t *testing.T, text, old string, others ...string) string {
	t.Helper()
	var all []*v1beta1.SidecarSet
	for _, other := range others {
		all = append(all, set(t, other))
	}
	var before *v1beta1.SidecarSet
	if old != "" {
		before = set(t, old)
	}
	if err := admission.Check(set(t, text), before, all).ToAggregate(); err != nil {
		return err.Error()
	}
	return ""
}

func TestWhatIsAllowedBesideWhatIsNot(t *testing.T) {
	t.Parallel()
	const always = "selector: {matchExpressions: [{key: inject, operator: Exists}]}, "
	another := func(rest string) string { return "metadata: {name: other}\nspec: {" + always + rest + "}" }
	patched := func(policy, key string) string {
		return "patchPodMetadata: [{annotations: {" + key + ": x}, patchPolicy: " + policy + "}]"
	}
	canary := func(flag string) string {
		return "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-canary: '" + flag + "', apps.kruise.io/sidecarset-base: log}}\n" +
			"spec: {selector: {matchLabels: {app: web}}, containers: [{name: a, image: a:2}], updateStrategy: {type: NotUpdate}}"
	}
	const a, b = "containers: [{name: a, image: a:1}]", "containers: [{name: b, image: b:1}]"
	for name, tc := range map[string]struct {
		set, old string
		others   []string
		want     string
	}{
		"custom version changed to one that is no label": {set: log("customVersion: 'a b', " + a), old: log("customVersion: v1, " + a), want: "spec.customVersion"},
		"canary that keeps its base":                     {set: canary("true"), old: canary("true"), others: []string{log(a)}},
		"base beside its canary":                         {set: log(a), others: []string{canary("true")}},
		"canary beside another SidecarSet":               {set: canary("true"), others: []string{log(a), another(a)}, want: "SidecarSet other"},
		"another SidecarSet beside a canary":             {set: another(a), others: []string{canary("true")}, want: "SidecarSet new"},
		"a base named without being a canary":            {set: canary("false"), others: []string{log(a)}, want: "SidecarSet log"},
		"itself among the others":                        {set: log("volumes: [{name: v, hostPath: {path: /}}], " + a), old: log("volumes: [{name: v, emptyDir: {}}], " + a), others: []string{log("volumes: [{name: v, emptyDir: {}}], " + a)}},
		"a clash that a change brings":                   {set: log(a), old: log(b), others: []string{another(a)}, want: "has a container a"},
		"a clash beside one that was there":              {set: log("volumes: [{name: v, emptyDir: {}}], " + a), old: log(a), others: []string{another("volumes: [{name: v, hostPath: {path: /}}], " + a)}, want: "another volume v"},
		"no canary any more, and another base":           {set: strings.Replace(canary("false"), "base: log", "base: x", 1), old: canary("true")},
		"volumes of two names":                           {set: log("volumes: [{name: v, emptyDir: {}}], " + a), others: []string{another("volumes: [{name: w, hostPath: {path: /}}], " + b)}},
		"annotations of two keys":                        {set: log(patched("Overwrite", "k") + ", " + a), others: []string{another(patched("Overwrite", "j") + ", " + b)}},
		"a label and an annotation":                      {set: log(patched("Overwrite", "k") + ", " + a), others: []string{another("patchPodMetadata: [{labels: {k: x}, patchPolicy: Overwrite}], " + b)}},
		"overwritten, kept by the other":                 {set: log(patched("Overwrite", "k") + ", " + a), others: []string{another(patched("Retain", "k") + ", " + b)}, want: "sets k as well"},
		"merged, overwritten by the other":               {set: log(patched("MergePatchJson", "k") + ", " + a), others: []string{another(patched("Overwrite", "k") + ", " + b)}, want: "sets k as well"},
		"overwritten, merged by the other":               {set: log(patched("Overwrite", "k") + ", " + a), others: []string{another(patched("MergePatchJson", "k") + ", " + b)}, want: "sets k as well"},
		"a label that does not select":                   {set: log("patchPodMetadata: [{labels: {team: x}}], " + a)},
		"a variable with a value":                        {set: log("containers: [{name: a, image: a:1, env: [{name: A, value: x}]}]")},
		"an init container that runs once":               {set: log("initContainers: [{name: a, image: a:1}]")},
		"a container with a restart policy":              {set: log("containers: [{name: a, image: a:1, restartPolicy: Never}]")},
		"policy of a native sidecar": {set: log("initContainers: [{name: a, image: a:1, restartPolicy: Always, " +
			"resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}}}]")},
		"a volume that changes to what no pod can have":          {set: log("volumes: [{name: v, hostPath: {path: ''}}], " + a), old: log("volumes: [{name: v, emptyDir: {}}], " + a), want: "spec.volumes[0]"},
		"an init container that changes to what no pod can have": {set: log("initContainers: [{name: i, image: i:1, terminationMessagePolicy: Neither}], " + a), old: log("initContainers: [{name: i, image: i:1}], " + a), want: "spec.initContainers[0]"},
	} {
		got := verdict(t, tc.set, tc.old, tc.others...)
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestHotUpgradeWithoutAnImageIsRefusedForThatAlone(t *testing.T) {
	t.Parallel()
	got := verdict(t, log("containers: [{name: a, upgradeStrategy: {upgradeType: HotUpgrade}}]"), "")
	if !strings.Contains(got, "spec.containers[0].image: Required") || strings.Contains(got, "another image") {
		t.Error(got)
	}
}

// A pin that is new has to name a revision that there is, unless missingPolicy says what is done then. One that was there
// before does not keep the SidecarSet from being changed.
func TestANewPinNamesARevisionThatExists(t *testing.T) {
	t.Parallel()
	pinned := func(pin string) string {
		return log("injectionStrategy: {revision: {" + pin + "}}, containers: [{name: a, image: a:1}]")
	}
	plain := log("containers: [{name: a, image: a:1}]")
	r := &appsv1.ControllerRevision{}
	r.Name, r.Labels = "log-1", map[string]string{v1beta1.LabelSidecarSetCustomVersion: "v1"}
	const name, version = "spec.injectionStrategy.revision.revisionName", "spec.injectionStrategy.revision.customVersion"
	for what, tc := range map[string]struct{ set, old, want string }{
		"none":                         {plain, "", ""},
		"none any more":                {plain, pinned("revisionName: none"), ""},
		"a name that exists":           {pinned("revisionName: log-1"), "", ""},
		"a version that exists":        {pinned("customVersion: v1"), "", ""},
		"a name that does not":         {pinned("revisionName: none"), "", name},
		"a version that does not":      {pinned("customVersion: v2"), "", version},
		"an empty name and a version":  {pinned("revisionName: '', customVersion: v2"), "", version},
		"nothing":                      {pinned(""), "", version},
		"with a policy":                {pinned("revisionName: none, missingPolicy: Skip"), "", ""},
		"added":                        {pinned("revisionName: none"), plain, name},
		"as before":                    {pinned("revisionName: none"), pinned("revisionName: none"), ""},
		"another name":                 {pinned("revisionName: none"), pinned("revisionName: log-1"), name},
		"another version":              {pinned("customVersion: v2"), pinned("customVersion: v1"), version},
		"another name and its version": {pinned("revisionName: none, customVersion: v1"), pinned("revisionName: log-1, customVersion: v1"), name},
	} {
		var old *v1beta1.SidecarSet
		if tc.old != "" {
			old = set(t, tc.old)
		}
		got := admission.CheckPin(set(t, tc.set), old, []*appsv1.ControllerRevision{r})
		if len(got) > 1 || (len(got) == 1) != (tc.want != "") || len(got) == 1 && got[0].Field != tc.want {
			t.Errorf("%s: %v, want %q", what, got, tc.want)
		}
	}
}

// A label that admission has set is removed again, whatever else the client has sent.
func TestPatchRemovesWhatAdmissionRemoves(t *testing.T) {
	t.Parallel()
	before := set(t, log("injectionStrategy: {failurePolicy: Ignore}, containers: [{name: a, image: a:1}]"))
	before.Labels = map[string]string{v1beta1.LabelInjectionFailurePolicy: "Fail", "team": "a"}
	raw, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	admission.Complete(after, nil)
	operations, err := admission.Patch(raw, before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := "/metadata/labels/" + strings.ReplaceAll(v1beta1.LabelInjectionFailurePolicy, "/", "~1")
	var removed []string
	for _, o := range operations {
		if o.Operation == "remove" {
			removed = append(removed, o.Path)
		}
	}
	if !slices.Equal(removed, []string{want}) {
		t.Errorf("removes %q, want %q", removed, want)
	}
	if _, err := admission.Patch([]byte("{"), before, after); err == nil || !strings.Contains(err.Error(), "read SidecarSet") {
		t.Errorf("error %v", err)
	}
}

// Neither the webhook nor a policy would inject it.
func TestNoSidecarSetHasEnginePolicyAndWhatAPolicyCannotInject(t *testing.T) {
	t.Parallel()
	const (
		hot  = "{name: a, image: a:1, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e:1}}"
		want = "spec.containers[0].upgradeStrategy.upgradeType: Forbidden: two containers with annotations of their own need the webhook"
	)
	webhook, plain := log("containers: ["+hot+"]"), log("injectionStrategy: {engine: Policy}, containers: [{name: a, image: a:1}]")
	both := log("injectionStrategy: {engine: Policy}, containers: [" + hot + "]")
	for name, tt := range map[string]struct{ set, old, want string }{
		"new":                {both, "", want},
		"gets the engine":    {both, webhook, want},
		"gets the container": {both, plain, want},
		"had both before":    {both, both, ""},
		"webhook":            {webhook, "", ""},
	} {
		if got := verdict(t, tt.set, tt.old); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The policy injects the base into each pod that it selects, so that a pod with a canary would have both.
func TestNoSidecarSetHasBothACanaryAndEnginePolicy(t *testing.T) {
	t.Parallel()
	const (
		canary = "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-canary: 'true', apps.kruise.io/sidecarset-base: log}}\n" +
			"spec: {selector: {matchLabels: {app: web}}, containers: [{name: a, image: a:2}], updateStrategy: {type: NotUpdate}}"
		base   = "metadata.annotations[apps.kruise.io/sidecarset-base]: Invalid value"
		engine = "spec.injectionStrategy.engine: Invalid value"
	)
	webhook, policy := log("containers: [{name: a, image: a:1}]"), log("injectionStrategy: {engine: Policy}, containers: [{name: a, image: a:1}]")
	for name, tt := range map[string]struct{ set, old, other, want string }{
		"canary of such a base":            {canary, "", policy, base},
		"becomes a canary of such a base":  {canary, strings.Replace(canary, "'true'", "'false'", 1), policy, base},
		"has been a canary of such a base": {canary, canary, policy, ""},
		"base gets the engine":             {policy, webhook, canary, engine},
		"base is created again with it":    {policy, "", canary, engine},
		"base has had the engine":          {policy, policy, canary, ""},
		"base loses the engine":            {webhook, policy, canary, ""},
		"canary of another base":           {policy, webhook, strings.Replace(canary, "base: log", "base: x", 1), ""},
	} {
		if got := verdict(t, tt.set, tt.old, tt.other); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
