package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/sidecarset/render"
)

func printed(t *testing.T, files string) string {
	t.Helper()
	var objects render.Objects
	var out strings.Builder
	if err := objects.Read([]byte(files)); err != nil {
		t.Fatal(err)
	}
	if err := render.Print(&out, &objects); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func in(spec string) string { return strings.Replace(log, "containers", spec+", containers", 1) }

// The first lines, before the difference.
func TestRenderSaysOneThingOfEachSidecarSet(t *testing.T) {
	t.Parallel()
	second := strings.NewReplacer("name: log", "name: aaa").Replace(log)
	for name, tc := range map[string]struct{ files, want string }{
		"in the order of their names": {pod + log + second, "SidecarSet aaa: injected\nSidecarSet log: injected\n"},
		"paused is said before the labels": {
			pod + strings.Replace(in("injectionStrategy: {paused: true}"), "app: web", "app: db", 1), "SidecarSet log: not injected: spec.injectionStrategy.paused\nthe pod stays as it is\n",
		},
		"the labels before the namespace": {
			pod + strings.Replace(in("namespace: other"), "app: web", "app: db", 1), "SidecarSet log: not injected: spec.selector does not select the labels of the pod\nthe pod stays as it is\n",
		},
		"a namespace without the label": {
			pod + in("namespaceSelector: {matchLabels: {a: b}}") + "kind: Namespace\nmetadata: {name: shop}\n", "SidecarSet log: not injected: it does not select namespace shop\nthe pod stays as it is\n",
		},
		"a namespace by its name": {
			pod + in("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}") + "kind: Namespace\nmetadata: {name: shop}\n", "SidecarSet log: injected\n",
		},
		"a revision": {
			pod + in("injectionStrategy: {revision: {revisionName: log-1}}"),
			"SidecarSet log: injected\nSidecarSet log: shown with its spec; a cluster may have the revision of spec.injectionStrategy.revision\n",
		},
		"another engine": {
			pod + in("injectionStrategy: {engine: Policy}"), "SidecarSet log: left to a MutatingAdmissionPolicy by spec.injectionStrategy.engine\nthe pod stays as it is\n",
		},
		"the namespace default": {strings.Replace(pod, "namespace: shop, ", "", 1) + in("namespace: default"), "SidecarSet log: injected\n"},
		"the last pod of several": {
			strings.Replace(pod, "app: web", "app: db", 1) + log + pod, "SidecarSet log: injected\n",
		},
		"a list": {
			"kind: List\nitems:\n- kind: Pod\n  metadata: {name: web, labels: {app: web}}\n  spec: {containers: [{name: app, image: app:1}]}\n" +
				"- kind: SidecarSet\n  metadata: {name: log}\n  spec: {selector: {matchLabels: {app: web}}, containers: [{name: log, image: log:1}]}\n",
			"SidecarSet log: injected\n",
		},
		"an empty document":                {"---\n# nothing\n---\n" + pod + log, "SidecarSet log: injected\n"},
		"a template without metadata":      {"kind: Deployment\nmetadata: {namespace: shop}\nspec: {template: {spec: {containers: [{name: app, image: app:1}]}}}\n---\n" + log, "SidecarSet log: not injected: spec.selector does not select the labels of the pod\nthe pod stays as it is\n"},
		"a template without its own space": {"kind: Deployment\nspec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app:1}]}}}\n---\n" + in("namespace: default"), "SidecarSet log: injected\n"},
		"the template has its kind":        {"kind: Deployment\nmetadata: {namespace: shop}\nspec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app:1}]}}}\n---\n" + in("namespace: shop"), "SidecarSet log: injected\n"},
	} {
		got, _, _ := strings.Cut(printed(t, tc.files), "--- pod\n")
		if got != tc.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, tc.want)
		}
	}
}

// Policies are applied as they are written: half of them would be taken for all.
func TestCompileWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	policy := strings.Replace(in("injectionStrategy: {engine: Policy}"), "{name: log}", `{name: log, resourceVersion: "1"}`, 1)
	fault := strings.NewReplacer("name: log", "name: bad", "image: log:1", "image: 'log:1', upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: 'empty:1'}").Replace(policy)
	for name, tc := range map[string]struct {
		files, refused string
		documents      int
	}{
		"two":                         {policy + strings.ReplaceAll(policy, "name: log", "name: two"), "", 4},
		"one that cannot be compiled": {policy + fault, "SidecarSet bad cannot be compiled", 0},
		"none":                        {pod, "no SidecarSet", 0},
	} {
		var objects render.Objects
		if err := objects.Read([]byte(tc.files)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out strings.Builder
		err := render.Compile(&out, &objects, "refit-system", nil, time.Unix(1e9, 0))
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) || strings.Count(out.String(), "---\n") != tc.documents {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestFilesAreReadWithStandardInput(t *testing.T) {
	t.Parallel()
	var objects render.Objects
	if err := objects.ReadFiles(strings.NewReader(pod+log), []string{"-"}); err != nil || len(objects.SidecarSets) != 1 || len(objects.Pod) == 0 {
		t.Errorf("%v, %+v", err, objects)
	}
	if err := objects.ReadFiles(nil, []string{t.TempDir() + "/none"}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := objects.ReadFiles(strings.NewReader("kind: SidecarSet\nspec: {contaners: []}\n"), []string{"-"}); err == nil || !strings.HasPrefix(err.Error(), "-: ") {
		t.Errorf("the file is not named: %v", err)
	}
}
