package admission_test

import (
	"cmp"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/admission"
)

// Both hashes are those that kruise-manager of OpenKruise 07169cfac writes.
func TestStoredSidecarSetsHaveDefaultsAndHashes(t *testing.T) {
	t.Parallel()
	s := set(t, log("containers: [{name: log, image: log:1}]"))
	s.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: "of a client"}
	admission.Complete(s, nil)
	want := map[string]string{
		"kruise.io/sidecarset-hash":               "f4z74444x5c84fw5v789f59d7fwbdd47dwvbw4bv9vwx4fxv24x4b488v4d54wc4",
		"kruise.io/sidecarset-hash-without-image": "4424wfff8b57d47vb7684zc4bb5478vxwwdcz7dd2xdwbf4d4446424d4w29cwd5",
	}
	if diff := gocmp.Diff(want, s.Annotations); diff != "" {
		t.Errorf("annotations -want +got:\n%s", diff)
	}
	if c := s.Spec.Containers[0]; c.ImagePullPolicy != "IfNotPresent" || c.PodInjectPolicy != v1beta1.BeforeAppContainer {
		t.Errorf("container %+v", c)
	}
}

func TestCustomVersionIsTheOneThatHasChanged(t *testing.T) {
	t.Parallel()
	type version struct{ label, spec string }
	of := func(v version) *v1beta1.SidecarSet {
		s := set(t, log("containers: [{name: log, image: log:1}]"))
		s.Spec.CustomVersion = v.spec
		if v.label != "" {
			s.Labels = map[string]string{v1beta1.LabelSidecarSetCustomVersion: v.label}
		}
		return s
	}
	for name, tc := range map[string]struct{ stored, sent, want version }{
		"v1alpha1 client on an object of OpenKruise":       {version{"", "1"}, version{"2", "1"}, version{"2", "2"}},
		"the same version":                                 {version{"", "1"}, version{"1", "1"}, version{"1", "1"}},
		"v1alpha1 client again":                            {version{"2", "2"}, version{"3", "2"}, version{"3", "3"}},
		"v1alpha1 client removes it":                       {version{"2", "2"}, version{"", "2"}, version{"", ""}},
		"v1alpha1 client replaces the object":              {version{"2", "2"}, version{"2", ""}, version{"2", "2"}},
		"v1beta1 client":                                   {version{"2", "2"}, version{"2", "3"}, version{"3", "3"}},
		"v1beta1 client without the label":                 {version{"", "2"}, version{"", "3"}, version{"", "3"}},
		"v1beta1 client removes it":                        {version{"", "2"}, version{"", ""}, version{"", ""}},
		"both":                                             {version{"1", "1"}, version{"2", "3"}, version{"3", "3"}},
		"nothing":                                          {version{"1", "1"}, version{"1", "1"}, version{"1", "1"}},
		"stored by an earlier version of Refit, unchanged": {version{"2", "1"}, version{"2", "1"}, version{"1", "1"}},
		"removed where they had been different":            {version{"2", "1"}, version{"", "1"}, version{"", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := of(tc.sent)
			admission.Complete(s, of(tc.stored))
			if got := (version{s.Labels[v1beta1.LabelSidecarSetCustomVersion], s.Spec.CustomVersion}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	created := of(version{"1", ""})
	admission.Complete(created, nil)
	if created.Spec.CustomVersion != "1" {
		t.Errorf("version %q, and OpenKruise reads no label of v1beta1", created.Spec.CustomVersion)
	}
}

func TestNamespaceIsStoredAsASelectorToo(t *testing.T) {
	t.Parallel()
	const byName = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "
	of := func(fields string) *v1beta1.SidecarSet {
		return set(t, log(fields+", containers: [{name: log, image: log:1}]"))
	}
	for name, tc := range map[string]struct{ stored, sent, want string }{
		"created":               {"", "namespace: a", byName + "a}}"},
		"changed":               {"namespace: a, " + byName + "a}}", "namespace: b, " + byName + "a}}", byName + "b}}"},
		"stored by OpenKruise":  {byName + "a}}", "namespace: b, " + byName + "a}}", byName + "b}}"},
		"another selector":      {"namespaceSelector: {matchLabels: {team: a}}", "namespace: b, namespaceSelector: {matchLabels: {team: a}}", "namespaceSelector: {matchLabels: {team: a}}"},
		"one more label":        {byName + "a, team: a}}", "namespace: b, " + byName + "a, team: a}}", byName + "a, team: a}}"},
		"with an expression":    {byName + "a}, matchExpressions: [{key: x, operator: Exists}]}", "namespace: b, " + byName + "a}, matchExpressions: [{key: x, operator: Exists}]}", byName + "a}, matchExpressions: [{key: x, operator: Exists}]}"},
		"both changed":          {byName + "a}}", "namespace: b, " + byName + "c}}", byName + "c}}"},
		"unchanged":             {"namespace: b, " + byName + "a}}", "namespace: b, " + byName + "a}}", byName + "a}}"},
		"both given":            {"", "namespace: b, " + byName + "a}}", byName + "a}}"},
		"all namespaces":        {"", "customVersion: x", "customVersion: x"},
		"the namespace removed": {"namespace: a, " + byName + "a}}", byName + "a}}", byName + "a}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := of(tc.sent)
			var old *v1beta1.SidecarSet
			if tc.stored != "" {
				old = of(tc.stored)
			}
			admission.Complete(s, old)
			if diff := gocmp.Diff(of(tc.want).Spec.NamespaceSelector, s.Spec.NamespaceSelector); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A client's own form of the object stays: fields that the types do not have, quantities, and what it has left out.
func TestPatchAddsOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	const sent = `
metadata: {name: log, annotations: {a/b~c: d}, future: 1}
spec:
  selector: {matchLabels: {app: web}}
  future: {a: [1]}
  namespace: b
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}, future: 1}
  containers:
  - {name: log, image: log:1, future: 1, resources: {limits: {cpu: 1000m}}, ports: [{containerPort: 1, future: 1}], livenessProbe: {httpGet: {port: 1}}, upgradeStrategy: {future: 1}}
`
	const want = `
metadata: {name: log, future: 1, annotations: {a/b~c: d, kruise.io/sidecarset-hash: FULL, kruise.io/sidecarset-hash-without-image: BARE}}
spec:
  selector: {matchLabels: {app: web}}
  future: {a: [1]}
  namespace: b
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: b}, future: 1}
  revisionHistoryLimit: 10
  updateStrategy: {type: RollingUpdate, maxUnavailable: 1, partition: 0}
  containers:
  - name: log
    image: log:1
    future: 1
    imagePullPolicy: IfNotPresent
    podInjectPolicy: BeforeAppContainer
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    shareVolumePolicy: {type: disabled}
    upgradeStrategy: {upgradeType: ColdUpgrade, future: 1}
    resources: {limits: {cpu: 1000m}}
    ports: [{containerPort: 1, future: 1, protocol: TCP}]
    livenessProbe: {timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3, httpGet: {port: 1, path: /, scheme: HTTP}}
`
	raw, err := yaml.YAMLToJSON([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	var before v1beta1.SidecarSet
	if err := json.Unmarshal(raw, &before); err != nil {
		t.Fatal(err)
	}
	old, after := before.DeepCopy(), before.DeepCopy()
	old.Spec.Namespace = "a"
	admission.Complete(after, old)
	operations, err := admission.Patch(raw, &before, after)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var got, wanted map[string]any
	if err := cmp.Or(json.Unmarshal(stored, &got), yaml.Unmarshal([]byte(want), &wanted)); err != nil {
		t.Fatal(err)
	}
	annotations := wanted["metadata"].(map[string]any)["annotations"].(map[string]any)
	for key := range annotations {
		if key != "a/b~c" {
			annotations[key] = after.Annotations[key]
		}
	}
	if diff := gocmp.Diff(wanted, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if operations, err = admission.Patch(stored, after, after); err != nil || len(operations) != 0 {
		t.Errorf("patched again: %v, %v", operations, err)
	}
}
