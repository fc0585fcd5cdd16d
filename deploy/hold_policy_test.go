package deploy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	byAlice   = "alice"
	byManager = "system:serviceaccount:refit-system:refit-manager"
)

// The texts of workloads: labels, and a spec before its template.
func workload(labels, spec, image string, annotations ...string) string {
	return `{"metadata":{"name":"web"` + labels + `},"spec":{` + spec + `"template":{"metadata":{"annotations":{` + strings.Join(annotations, ",") +
		`}},"spec":{"containers":[{"name":"app","image":"` + image + `"}]}}}}`
}

const (
	held       = `,"labels":{"refit.dev/held":"true"}`
	other      = `,"labels":{"app":"web"}`
	both       = `,"labels":{"app":"web","refit.dev/held":"true"}`
	paused     = `"paused":true,`
	resumed    = `"paused":false,`
	restarted  = `"kubectl.kubernetes.io/restartedAt":"2026-11-26T12:00:00Z"`
	restarted2 = `"kubectl.kubernetes.io/restartedAt":"2026-11-26T13:00:00Z"`
	rolling    = `"updateStrategy":{"type":"RollingUpdate"},`
	zero       = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}},`
	three      = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":3}},`
	heldZero   = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2147483647}},`
	heldThree  = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2147483644}},`
	onDelete   = `"updateStrategy":{"type":"OnDelete"},`
	surge      = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},`
	heldSurge  = `"updateStrategy":{"type":"OnDelete","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},`
)

func TestChangedTemplateOfADeploymentIsHeld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write

		want string // empty: what was written
	}{
		"image":                       {write: write{before: workload(other, "", "a"), after: workload(other, "", "b")}, want: workload(both, paused, "b")},
		"without labels":              {write: write{before: workload("", "", "a"), after: workload("", "", "b")}, want: workload(held, paused, "b")},
		"annotation":                  {write: write{before: workload("", "", "a"), after: workload("", "", "a", `"a":"b"`)}, want: workload(held, paused, "a", `"a":"b"`)},
		"replicas":                    {write: write{before: workload("", `"replicas":1,`, "a"), after: workload("", `"replicas":2,`, "a")}},
		"restart":                     {write: write{before: workload("", "", "a"), after: workload("", "", "a", restarted)}},
		"another restart, with image": {write: write{before: workload("", "", "a", restarted), after: workload("", "", "b", restarted2)}},
		"image after a restart":       {write: write{before: workload("", "", "a", restarted), after: workload("", "", "b", restarted)}, want: workload(held, paused, "b", restarted)},
		"replace without the restart": {write: write{before: workload("", "", "a", restarted), after: workload("", "", "b")}, want: workload(held, paused, "b")},
		"paused by its owner":         {write: write{before: workload("", paused, "a"), after: workload("", paused, "b")}},
		"paused with the change":      {write: write{before: workload("", "", "a"), after: workload("", paused, "b")}},
		"resumed by its owner":        {write: write{before: workload("", paused, "a"), after: workload("", resumed, "a")}, want: workload(held, paused, "a")},
		"resumed, held":               {write: write{before: workload(held, paused, "a"), after: workload(held, resumed, "a")}, want: workload(held, paused, "a")},
		"replaced, held":              {write: write{before: workload(both, paused, "a"), after: workload(other, "", "b")}, want: workload(both, paused, "b")},
		"label removed, held":         {write: write{before: workload(held, paused, "a"), after: workload("", paused, "a")}, want: workload(held, paused, "a")},
		"restart, held":               {write: write{before: workload(held, paused, "a"), after: workload(held, "", "a", restarted)}, want: workload(held, paused, "a", restarted)},
		"held, policy being deleted":  {write: write{gone: true, before: workload(held, paused, "a"), after: workload("", "", "b")}, want: workload(held, paused, "b")},
		"policy being deleted":        {write: write{gone: true, before: workload("", "", "a"), after: workload("", "", "b")}},
		"released by refit-manager":   {write: write{user: byManager, before: workload(held, paused, "a"), after: workload("", resumed, "a")}},
		"undone by refit-manager":     {write: write{user: byManager, before: workload("", "", "a"), after: workload("", "", "b")}},
		"held by its owner":           {write: write{spec: `,"holdPolicy":"ByOwner"`, before: workload("", "", "a"), after: workload("", "", "b")}},
		"policy of another":           {write: write{targets: "db", before: workload("", "", "a"), after: workload("", "", "b")}},
		"another is called so, too": {
			write: write{user: "system:serviceaccount:shop:refit-manager:x", before: workload("", "", "a"), after: workload("", "", "b")}, want: workload(held, paused, "b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.kind = "Deployment"
			tc.becomes(t, tc.want)
		})
	}
}

func TestChangedTemplateOfAStatefulSetIsHeld(t *testing.T) {
	t.Parallel()
	const most = `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}},`
	for name, tc := range map[string]struct {
		before, after, want string
	}{
		"image":                          {workload(other, zero, "a"), workload(other, zero, "b"), workload(both, heldZero, "b")},
		"no rollingUpdate":               {workload("", rolling, "a"), workload("", rolling, "b"), workload(held, heldZero, "b")},
		"no partition":                   {workload("", most, "a"), workload("", most, "b"), workload(held, strings.Replace(most, "}", `,"partition":2147483647}`, 1), "b")},
		"partition of its owner":         {workload("", three, "a"), workload("", three, "b"), workload(held, heldThree, "b")},
		"restart":                        {workload("", zero, "a"), workload("", zero, "a", restarted), ""},
		"OnDelete":                       {workload("", onDelete, "a"), workload("", onDelete, "b"), ""},
		"to OnDelete":                    {workload("", zero, "a"), workload("", onDelete, "b"), ""},
		"from OnDelete":                  {workload("", onDelete, "a"), workload("", zero, "a"), workload(held, heldZero, "a")},
		"partition lowered":              {workload("", three, "a"), workload("", zero, "a"), workload(held, heldZero, "a")},
		"partition raised":               {workload("", zero, "a"), workload("", three, "a"), ""},
		"scaled":                         {workload("", `"replicas":1,`+zero, "a"), workload("", `"replicas":2,`+zero, "a"), ""},
		"held, nothing named":            {workload(held, heldThree, "a"), workload(held, heldThree, "b"), workload(held, heldThree, "b")},
		"held, partition 0 named":        {workload(held, heldThree, "a"), workload(held, zero, "b"), workload(held, heldZero, "b")},
		"held, partition of owner named": {workload(held, heldZero, "a"), workload("", three, "a"), workload(held, heldThree, "a")},
		"held, to OnDelete":              {workload(held, heldZero, "a"), workload(held, onDelete, "a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write{kind: "StatefulSet", before: tc.before, after: tc.after}.becomes(t, tc.want)
		})
	}
}

func TestChangedTemplateOfADaemonSetIsHeld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after, want string
	}{
		"image":                    {workload(other, surge, "a"), workload(other, surge, "b"), workload(both, heldSurge, "b")},
		"restart":                  {workload("", surge, "a"), workload("", surge, "a", restarted), ""},
		"OnDelete":                 {workload("", onDelete, "a"), workload("", onDelete, "b"), ""},
		"to OnDelete":              {workload("", surge, "a"), workload("", onDelete, "b"), ""},
		"from OnDelete":            {workload("", onDelete, "a"), workload("", surge, "a"), workload(held, heldSurge, "a")},
		"held, nothing named":      {workload(held, heldSurge, "a"), workload(held, heldSurge, "b"), workload(held, heldSurge, "b")},
		"held, RollingUpdate":      {workload(held, heldSurge, "a"), workload(held, surge, "b"), workload(held, heldSurge, "b")},
		"held, label removed":      {workload(held, heldSurge, "a"), workload("", heldSurge, "a"), workload(held, heldSurge, "a")},
		"held, OnDelete by others": {workload(held, heldSurge, "a"), workload(held, onDelete, "a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write{kind: "DaemonSet", before: tc.before, after: tc.after}.becomes(t, tc.want)
		})
	}
}

// becomes evaluates the write with an accepted policy for the workload, if the write does not say otherwise.
func (w write) becomes(t *testing.T, text string) {
	t.Helper()
	w.accepted = true
	if w.user == "" {
		w.user = byAlice
	}
	if w.targets == "" {
		w.targets = "web"
	}
	if text == "" {
		text = w.after
	}
	w.becomesByWebhook(t, text)
	if w.targets == "web" && w.spec == "" && !w.gone { // then refit-manager sets the label
		w.labels = uid
		w.stores(t, byLabel, text)
	}
}

// stores evaluates the write by one of the policies.
func (w write) stores(t *testing.T, by, text string) {
	t.Helper()
	got, _ := w.holds(t, by)
	if diff := cmp.Diff(w.object(t, text), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("by %s, label %q (-want +stored):\n%s", by, w.labels, diff)
	}
}

func TestLabelHoldsOnlyTheWorkloadThatItNames(t *testing.T) {
	t.Parallel()
	w := write{kind: "Deployment", user: byAlice, before: workload("", "", "a"), after: workload("", "", "b")}
	for label, want := range map[string]string{
		"":    workload("", "", "b"),
		"7f1": workload("", "", "b"), // from a copied manifest
		uid:   workload(held, paused, "b"),
	} {
		w.labels = label
		w.stores(t, byLabel, want)
	}
	w.labels, w.before = "", labelled(own)
	if stored, _ := w.holds(t, byLabel); !stored.(*appsv1.Deployment).Spec.Paused {
		t.Error("a write that removes the label and changes the template is not held")
	}
}

const own = `,"labels":{"` + holdLabel + `":"` + uid + `"}`

// A tool that replaces objects removes the label in each of its writes; between two of them nothing would hold the workload.
func TestLabelIsKeptUnlessItsValueIsChanged(t *testing.T) {
	t.Parallel()
	const foreign = `,"labels":{"app":"web"}`
	const released = `,"labels":{"` + holdLabel + `":"none"}`
	for name, tc := range map[string]struct{ user, before, after, want string }{
		"replaced":                   {byAlice, own, "", own},
		"replaced with other labels": {byAlice, own, foreign, `,"labels":{"app":"web","` + holdLabel + `":"` + uid + `"}`},
		"kept":                       {byAlice, own, own, own},
		"another value":              {byAlice, own, released, released},
		"after another value":        {byAlice, released, "", ""},
		"by refit-manager":           {byManager, own, "", ""},
		"there was none":             {byAlice, foreign, foreign, foreign},
	} {
		w := write{kind: "Deployment", user: tc.user, before: labelled(tc.before), after: labelled(tc.after)}
		got, _ := w.holds(t, "refit-hold-label")
		if diff := cmp.Diff(w.object(t, labelled(tc.want)), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +stored):\n%s", name, diff)
		}
	}
}

// The next write of the owner, who may also copy the manifest, needs no comparison with all InPlaceUpdatePolicies of the namespace.
func TestLabelOfAnUndoIsRemovedByOthers(t *testing.T) {
	t.Parallel()
	const undone = `,"labels":{"refit.dev/undone":"true"}`
	for user, want := range map[string]string{byAlice: "", byManager: undone} {
		w := write{kind: "Deployment", user: user, before: labelled(undone), after: labelled(undone)}
		got, _ := w.holds(t, "refit-undone-label")
		if diff := cmp.Diff(w.object(t, labelled(want)), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("by %s (-want +stored):\n%s", user, diff)
		}
	}
}

// The API server evaluates the conditions of a policy for each of its parameters, 0.2 ms each: with all InPlaceUpdatePolicies of a
// namespace as parameters each write to a workload there would take longer with each of them.
func TestWritesToWorkloadsAreNotComparedWithAllPolicies(t *testing.T) {
	t.Parallel()
	for _, p := range documents[admissionregistrationv1.MutatingAdmissionPolicy](t, "hold/*.yaml", "MutatingAdmissionPolicy") {
		if p.Spec.ParamKind != nil {
			t.Errorf("%s has parameters", p.Name)
		}
	}
	for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, "manager/*.yaml", "ValidatingAdmissionPolicy") {
		if p.Spec.ParamKind == nil || p.Spec.ParamKind.Kind != "InPlaceUpdatePolicy" {
			continue
		}
		want := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "refit.dev/undone", Operator: metav1.LabelSelectorOpExists}}}
		if diff := cmp.Diff(want, p.Spec.MatchConstraints.ObjectSelector); diff != "" {
			t.Errorf("%s is for more than undone workloads:\n%s", p.Name, diff)
		}
	}
}

// docs/workloads.md has how a workload without a policy is released by hand: the label has to be removed by a write before.
func TestHeldWorkloadIsNotReleasedByTheWriteThatRemovesTheLabel(t *testing.T) {
	t.Parallel()
	const label = `,"` + holdLabel + `":"` + uid + `"`
	before := `{"metadata":{"name":"web","uid":"` + uid + `","labels":{"refit.dev/held":"true"` + label + `}},"spec":{"paused":true,"template":{}}}`
	w := write{kind: "Deployment", user: byAlice, before: before, after: `{"metadata":{"name":"web","uid":"` + uid + `"},"spec":{"template":{}}}`}
	if stored, _ := w.holds(t, byLabel); !stored.(*appsv1.Deployment).Spec.Paused {
		t.Error("released, although the workload had the label before the write")
	}
	w.before = strings.Replace(before, label, "", 1)
	if stored, _ := w.holds(t, byLabel); stored.(*appsv1.Deployment).Spec.Paused {
		t.Error("still held, although the workload had no label before the write")
	}
}

// The API server ends an evaluation at a cost of 2,500,000.
func TestHoldingCostsLittle(t *testing.T) {
	t.Parallel()
	var annotations []string
	for len(annotations) < 1000 {
		annotations = append(annotations, `"k`+strings.Repeat("x", len(annotations)%40)+string(rune('a'+len(annotations)%26))+`":"`+strings.Repeat("v", 200)+`"`)
	}
	w := write{kind: "Deployment", user: byAlice, labels: uid, before: workload("", "", "a", annotations...), after: workload("", "", "b", annotations...)}
	if _, cost := w.holds(t, byLabel); cost > 10_000 {
		t.Errorf("the update of a large template costs %d", cost)
	}
	w.labels = "7f1"
	if _, cost := w.holds(t, byLabel); cost > 20 {
		t.Errorf("a workload with the label of another one costs %d", cost)
	}
}
