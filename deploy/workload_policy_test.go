package deploy_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// refusals evaluates what the bound account writes. The last word of a case is a part of the refusal, empty if it is allowed.
func (p policy) refusals(t *testing.T, before string, cases map[string][]string) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edits, want := tc[:len(tc)-1], tc[len(tc)-1]
			after := strings.NewReplacer(edits...).Replace(before)
			if len(edits) > 0 && after == before {
				t.Fatalf("nothing is changed in %s", before)
			}
			_, refused := p.evaluate(t, review{user: account, operation: admission.Update, oldObject: before, object: after})
			if (want == "") != (refused == "") || !strings.Contains(refused, want) {
				t.Errorf("refused: %q, want %q", refused, want)
			}
		})
	}
}

const podSpec = `"spec":{"restartPolicy":"Always","initContainers":[{"name":"setup","image":"setup:1","resources":{}}],` +
	`"containers":[{"name":"app","image":"app:1","command":["run"],"resources":{}}]}`

func TestManagerReleasesHeldWorkloadsAndWritesTheirTemplates(t *testing.T) {
	t.Parallel()
	workloads := shipped(t, "manager/*.yaml", "refit-manager-workloads")
	of := func(kind, labels, spec string) string {
		return `{"apiVersion":"apps/v1","kind":"` + kind + `","metadata":{"name":"web","labels":{"app":"web"` + labels + `},"annotations":{"a":"b"}},` +
			`"spec":{"replicas":3,` + spec + `"template":{"metadata":{"labels":{"app":"web"}},` + podSpec + `}}}`
	}
	const label, image, other = `,"refit.dev/held":"true"`, `"app:1"`, `"app:2"`
	const labels, undone = `"labels":{"app":"web",`, `"labels":{"refit.dev/undone":"true","app":"web",` // of the workload
	workloads.refusals(t, of("Deployment", label, `"paused":true,`), map[string][]string{
		"released":                          {label, "", `"paused":true,`, "", ""},
		"former template":                   {labels, undone, image, other, ""},
		"former labels":                     {labels, undone, `"labels":{"app":"web"}},"spec"`, `"labels":{"app":"web","tier":"x"}},"spec"`, ""},
		"former resources":                  {labels, undone, `"command":["run"],"resources":{}`, `"command":["run"],"resources":{"limits":{"cpu":"1"}}`, ""},
		"former template without the label": {image, other, "only write a template with the label refit.dev/undone"},
		"label of an undo alone":            {labels, undone, ""},
		"label alone":                       {label, "", ""},
		"resumed, still held":               {`"paused":true,`, "", "only resume a Deployment from which it removes"},
		"another command":                   {labels, undone, `["run"]`, `["steal"]`, "only images, resources, labels and annotations of a template"},
		"a variable":                        {labels, undone, `"command":["run"],`, `"command":["run"],"env":[{"name":"A"}],`, "only images"},
		"no command":                        {labels, undone, `"command":["run"],`, "", "only images"},
		"another container":                 {labels, undone, `"name":"app"`, `"name":"other"`, "only images"},
		"one more container":                {labels, undone, `"containers":[`, `"containers":[{"name":"x","image":"x"},`, "only images"},
		"no init containers":                {labels, undone, `"initContainers":[{"name":"setup","image":"setup:1","resources":{}}],`, "", "only images"},
		"service account":                   {labels, undone, `"restartPolicy"`, `"serviceAccountName":"admin","restartPolicy"`, "only images"},
		"replicas":                          {`"replicas":3`, `"replicas":0`, "nothing of a workload's spec"},
		"selector":                          {`"replicas":3`, `"replicas":3,"selector":{}`, "nothing of a workload's spec"},
		"replicas removed":                  {`"replicas":3,`, "", "nothing of a workload's spec"},
		"another label":                     {`"labels":{"app":"web",`, `"labels":{"app":"db",`, "nothing of a workload's metadata"},
		"a label removed":                   {`"labels":{"app":"web",`, `"labels":{`, "nothing of a workload's metadata"},
		"an annotation":                     {`"a":"b"`, `"a":"c"`, "nothing of a workload's metadata"},
		"a finalizer":                       {`"name":"web",`, `"name":"web","finalizers":["a.b/c"],`, "nothing of a workload's metadata"},
		"an owner":                          {`"name":"web",`, `"name":"web","ownerReferences":[],`, "nothing of a workload's metadata"},
		"a value that does not release it":  {`"refit.dev/held":"true"`, `"refit.dev/held":"false"`, "nothing of a workload's metadata"},
	})
	workloads.refusals(t, of("Deployment", label+`,"refit.dev/undone":"true"`, `"paused":true,`), map[string][]string{
		"released after an undo": {label + `,"refit.dev/undone":"true"`, "", `"paused":true,`, "", ""},
	})
	workloads.refusals(t, of("Deployment", "", ""), map[string][]string{
		"not held":       {image, other, "only update workloads that are held"},
		"held by itself": {`"app":"web"},"annotations"`, `"app":"web","refit.dev/held":"true"},"annotations"`, "are held"},
	})
	const uid, hold = `"name":"web","uid":"u-1"`, `,"refit.dev/hold-uid":"u-1"`
	identified := strings.Replace(of("Deployment", "", ""), `"name":"web"`, uid, 1)
	labelled := strings.Replace(of("Deployment", hold, ""), `"name":"web"`, uid, 1)
	workloads.refusals(t, identified, map[string][]string{
		"labelled":                             {`"app":"web"},"annotations"`, `"app":"web"` + hold + `},"annotations"`, ""},
		"labelled for another workload":        {`"app":"web"},"annotations"`, `"app":"web","refit.dev/hold-uid":"u-2"},"annotations"`, "nothing of a workload's metadata"},
		"labelled with another label":          {`"app":"web"},"annotations"`, `"app":"db"` + hold + `},"annotations"`, "nothing of a workload's metadata"},
		"labelled with another template":       {`"app":"web"},"annotations"`, `"app":"web"` + hold + `},"annotations"`, image, other, "only update workloads that are held"},
		"labelled with a pause of the manager": {`"app":"web"},"annotations"`, `"app":"web"` + hold + `},"annotations"`, `"replicas":3,`, `"replicas":3,"paused":true,`, "held"},
	})
	workloads.refusals(t, labelled, map[string][]string{
		"label removed":                   {hold, "", ""},
		"label removed, another template": {hold, "", image, other, "only update workloads that are held"},
		"label removed, an annotation":    {hold, "", `"a":"b"`, `"a":"c"`, "only update workloads that are held"},
	})
	workloads.refusals(t, of("Deployment", "", `"paused":true,`), map[string][]string{
		"undone, held by its owner":   {`"app":"web"},"annotations"`, `"app":"web","refit.dev/undone":"true"},"annotations"`, image, other, ""},
		"released, held by its owner": {`"paused":true,`, "", "only resume a Deployment from which it removes"},
	})
	rolling := func(partition string) string {
		return `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2,"partition":` + partition + `}},`
	}
	workloads.refusals(t, of("StatefulSet", label, rolling("2147483644")), map[string][]string{
		"released":                   {label, "", "2147483644", "3", ""},
		"lower partition":            {label, "", "2147483644", "2", "give back the owner's update strategy"},
		"partition, still held":      {"2147483644", "3", "give back the owner's update strategy"},
		"more at a time":             {label, "", "2147483644", "3", `"maxUnavailable":2`, `"maxUnavailable":9`, "give back the owner's update strategy"},
		"without the owner's values": {label, "", "2147483644", "3", `"maxUnavailable":2,`, "", "give back the owner's update strategy"},
		"OnDelete":                   {label, "", `"RollingUpdate"`, `"OnDelete"`, "give back the owner's update strategy"},
	})
	workloads.refusals(t, of("StatefulSet", label, rolling("3")), map[string][]string{
		"a partition of the owner, lowered": {label, "", `"partition":3`, `"partition":0`, "give back the owner's update strategy"},
	})
	const daemons = `"updateStrategy":{"type":"OnDelete","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},`
	workloads.refusals(t, of("DaemonSet", label, daemons), map[string][]string{
		"released":                        {label, "", "OnDelete", "RollingUpdate", ""},
		"rolling, still held":             {"OnDelete", "RollingUpdate", "give back the owner's update strategy"},
		"released with another surge":     {label, "", "OnDelete", "RollingUpdate", `"maxSurge":1`, `"maxSurge":2`, "give back the owner's update strategy"},
		"without the values of the owner": {label, "", "OnDelete", "RollingUpdate", `,"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}`, "", "give back the owner's update strategy"},
	})
	for _, operation := range []admission.Operation{admission.Create, admission.Delete} {
		if _, refused := workloads.evaluate(t, review{user: account, operation: operation, object: of("Deployment", label, ""), oldObject: of("Deployment", label, "")}); refused == "" {
			t.Errorf("%s is allowed", operation)
		}
	}
	r := review{user: account, operation: admission.Update, subresource: "scale", object: of("Deployment", label, ""), oldObject: of("Deployment", label, "")}
	if _, refused := workloads.evaluate(t, r); !strings.Contains(refused, "only update workloads") {
		t.Errorf("scale: refused: %q", refused)
	}
	r = review{user: byAlice, operation: admission.Update, object: of("Deployment", "", ""), oldObject: of("Deployment", label, "")}
	if matches, _ := workloads.evaluate(t, r); matches {
		t.Error("the policy is for other users, too")
	}
}

func TestManagerUndoesOnlyWhereAPolicySaysSo(t *testing.T) {
	t.Parallel()
	undo := shipped(t, "manager/*.yaml", "refit-manager-undo")
	for name, tc := range map[string]struct {
		kind, name, spec, after         string
		accepted, gone, undone, refused bool
	}{
		"Pause":                  {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Pause","deletionPolicy":"Finish"`, after: workload("", "", "b"), accepted: true, refused: true},
		"release":                {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Pause"`, after: workload("", resumed, "a"), accepted: true},
		"failurePolicy":          {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Undo"`, after: workload("", "", "b"), accepted: true},
		"deletionPolicy":         {kind: "Deployment", name: "web", spec: `,"deletionPolicy":"Undo"`, after: workload("", "", "b"), accepted: true},
		"of another":             {kind: "Deployment", name: "db", after: workload("", "", "b"), accepted: true},
		"of another kind":        {kind: "StatefulSet", name: "web", after: workload("", "", "b"), accepted: true},
		"that is not accepted":   {kind: "Deployment", name: "web", after: workload("", "", "b")},
		"of another by its name": {kind: "Deployment", name: "we", after: workload("", "", "b"), accepted: true},
		// Somebody has changed the policy after the undo, and then deletes it.
		"deleted after an undo":       {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Pause"`, after: workload("", "", "b"), accepted: true, gone: true, undone: true},
		"deleted, nothing was undone": {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Pause"`, after: workload("", "", "b"), accepted: true, gone: true, refused: true},
		"undone, and not deleted":     {kind: "Deployment", name: "web", spec: `,"failurePolicy":"Pause"`, after: workload("", "", "b"), accepted: true, undone: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := write{kind: tc.kind, targets: tc.name, spec: tc.spec, accepted: tc.accepted, gone: tc.gone}.policy()
			if tc.undone {
				policy = strings.Replace(policy, `"status":{`, `"status":{"undoneRevision":"r",`, 1)
			}
			r := review{user: byManager, operation: admission.Update, kind: "Deployment", name: "web", params: policy, oldObject: workload("", "", "a"), object: tc.after}
			r.oldObject, r.object = typed(r.oldObject), typed(r.object)
			if _, refused := undo.evaluate(t, r); tc.refused != (refused != "") {
				t.Errorf("refused: %q", refused)
			}
			r.user = byAlice
			if _, refused := undo.evaluate(t, r); refused != "" {
				t.Errorf("a user is refused: %q", refused)
			}
		})
	}
}

func typed(text string) string {
	return strings.Replace(text, "{", `{"apiVersion":"apps/v1","kind":"Deployment",`, 1)
}

func TestManagerWritesTemplatesOfReplicaSetsOnly(t *testing.T) {
	t.Parallel()
	sets := shipped(t, "manager/*.yaml", "refit-manager-replicasets")
	const owner = `"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]`
	set := `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-5d7f","labels":{"app":"web"},"annotations":{"deployment.kubernetes.io/revision":"1"},` + owner + `},` +
		`"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"pod-template-hash":"5d7f"}},` + podSpec + `}}}`
	sets.refusals(t, set, map[string][]string{
		"template":            {`"app:1"`, `"app:2"`, ""},
		"labels of templates": {`"pod-template-hash":"5d7f"`, `"pod-template-hash":"5d7f","tier":"x"`, ""},
		"revision":            {`"deployment.kubernetes.io/revision":"1"`, `"deployment.kubernetes.io/revision":"2","kubernetes.io/change-cause":"x"`, ""},
		"another hash":        {`"pod-template-hash":"5d7f"`, `"pod-template-hash":"other"`, "nothing of a ReplicaSet but its template"},
		"replicas":            {`"replicas":0`, `"replicas":5`, "nothing of a ReplicaSet"},
		"labels":              {`"labels":{"app":"web"},"ann`, `"labels":{"app":"db"},"ann`, "nothing of a ReplicaSet"},
		"an annotation":       {`"deployment.kubernetes.io/revision":"1"`, `"deployment.kubernetes.io/revision":"1","a":"b"`, "nothing of a ReplicaSet"},
		"an owner":            {`"controller":true}`, `"controller":true},{"apiVersion":"v1","kind":"Pod","name":"x","uid":"v"}`, "only write ReplicaSets of Deployments"},
		"another command":     {`["run"]`, `["steal"]`, "only images"},
		"a volume":            {`"restartPolicy"`, `"volumes":[{"name":"x"}],"restartPolicy"`, "only images"},
	})
	for name, tc := range map[string]struct {
		edits   []string
		refused string
	}{
		"history":               {},
		"with replicas":         {edits: []string{`"replicas":0`, `"replicas":1`}, refused: "with 0 replicas"},
		"with one by default":   {edits: []string{`"replicas":0,`, ""}, refused: "with 0 replicas"},
		"of nobody":             {edits: []string{owner, `"ownerReferences":[]`}, refused: "of Deployments"},
		"of no controller":      {edits: []string{`"controller":true`, `"controller":false`}, refused: "of Deployments"},
		"of another kind":       {edits: []string{`"kind":"Deployment"`, `"kind":"StatefulSet"`}, refused: "of Deployments"},
		"named as of another's": {edits: []string{`"web-5d7f"`, `"db-5d7f"`}, refused: "of Deployments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := review{user: account, operation: admission.Create, object: strings.NewReplacer(tc.edits...).Replace(set)}
			if _, refused := sets.evaluate(t, r); (tc.refused == "") != (refused == "") || !strings.Contains(refused, tc.refused) {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// Whoever may write InPlaceUpdatePolicies but not the workload must gain nothing by them.
// A deletion during an update has pods updated, or the former template written.
func TestOnlyWhoMayUpdateTheWorkloadDeletesItsInPlaceUpdatePolicyDuringAnUpdate(t *testing.T) {
	t.Parallel()
	policies := shipped(t, "manager/*.yaml", "refit-inplaceupdatepolicy")
	const (
		target   = `"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web"}`
		head     = `{"apiVersion":"refit.dev/v1alpha1","kind":"InPlaceUpdatePolicy","metadata":{"name":"web","namespace":"shop"},"spec":{` + target
		updating = `},"status":{"update":{"startTime":"2026-01-01T00:00:00Z"}}}`
	)
	ending := metav1.Now()
	for name, tc := range map[string]struct {
		object  string
		user    string
		ending  *metav1.Time
		refused bool
	}{
		"during an update":         {object: head + `,"deletionPolicy":"Undo"` + updating, refused: true},
		"without an update":        {object: head + `,"deletionPolicy":"Undo"},"status":{}}`},
		"before its first status":  {object: head + `}}`},
		"it only releases":         {object: head + `,"deletionPolicy":"Release"` + updating},
		"the namespace is deleted": {object: head + `,"deletionPolicy":"Undo"` + updating, ending: &ending},
		"its owner is deleted":     {object: head + `,"deletionPolicy":"Undo"` + updating, user: "system:serviceaccount:kube-system:generic-garbage-collector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothing := func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionNoOpinion, "", nil
			}
			shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: tc.ending}}
			_, refused := policies.evaluate(t, review{user: cmp.Or(tc.user, byAlice), operation: admission.Delete, oldObject: tc.object, namespace: shop, may: nothing})
			if tc.refused != (refused != "") || tc.refused && !strings.Contains(refused, "or delete one during an update") {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

func TestOnlyWhoMayUpdateTheWorkloadWritesAnInPlaceUpdatePolicy(t *testing.T) {
	t.Parallel()
	policies := shipped(t, "manager/*.yaml", "refit-inplaceupdatepolicy")
	for name, tc := range map[string]struct {
		verb, resource, name string // what the user may
		refused              bool
	}{
		"update":         {verb: "update", resource: "statefulsets", name: "web"},
		"patch":          {verb: "patch", resource: "statefulsets", name: "web"},
		"get":            {verb: "get", resource: "statefulsets", name: "web", refused: true},
		"of another":     {verb: "update", resource: "statefulsets", name: "db", refused: true},
		"of other kinds": {verb: "update", resource: "deployments", name: "web", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			may := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetUser().GetName() == byAlice && a.GetVerb() == tc.verb && a.GetAPIGroup() == "apps" && a.GetResource() == tc.resource && a.GetName() == tc.name && a.GetNamespace() == "shop" {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			}
			object := write{kind: "StatefulSet", targets: "web"}.policy()
			shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			for operation, before := range map[admission.Operation]string{admission.Create: "", admission.Update: object} {
				_, refused := policies.evaluate(t, review{user: byAlice, operation: operation, object: object, oldObject: before, namespace: shop, may: may})
				if tc.refused != (refused != "") || tc.refused && !strings.Contains(refused, "only who may update") {
					t.Errorf("%s: refused: %q", operation, refused)
				}
			}
		})
	}
}
