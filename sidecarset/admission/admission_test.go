package admission_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/admission"
)

func set(t *testing.T, text string) *v1beta1.SidecarSet {
	t.Helper()
	var s v1beta1.SidecarSet
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return &s
}

// spec of SidecarSet log, which selects app=web.
func log(rest string) string {
	return "metadata: {name: log}\nspec: {selector: {matchLabels: {app: web}}, " + rest + "}"
}

func TestSidecarSetsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	const hot = "upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e:1}"
	for name, tc := range map[string]struct {
		set  string
		want []string // empty: accepted
	}{
		"plain":                      {log("containers: [{name: a, image: a:1}]"), nil},
		"service account":            {strings.Replace(log("containers: [{name: a, image: a:1}]"), "name: log", "name: log, annotations: {sidecarset.refit.dev/service-account: A_b}", 1), []string{"metadata.annotations[sidecarset.refit.dev/service-account]"}},
		"image missing":              {log("containers: [{name: a}]"), []string{"spec.containers[0].image", "Required"}},
		"the empty image":            {log("containers: [{name: b, image: e:1}, {name: a, image: e:1, " + hot + "}]"), []string{"spec.containers[1].upgradeStrategy.hotUpgradeEmptyImage", "another image than image"}},
		"the empty image, native":    {log("initContainers: [{name: a, image: e:1, restartPolicy: Always, " + hot + "}]"), []string{"spec.initContainers[0].upgradeStrategy.hotUpgradeEmptyImage"}},
		"the empty image, cold":      {log("containers: [{name: a, image: e:1, upgradeStrategy: {hotUpgradeEmptyImage: e:1}}]"), nil},
		"name of a container":        {log("containers: [{name: A_b, image: a:1}]"), []string{"spec.containers[0].name"}},
		"name too long for -1":       {log("containers: [{name: " + strings.Repeat("a", 62) + ", image: a:1, " + hot + "}]"), []string{"spec.containers[0].name", "63"}},
		"init and container":         {log("containers: [{name: a, image: a:1}], initContainers: [{name: a, image: a:1}]"), []string{"spec.containers[0].name", "Duplicate"}},
		"twin and container":         {log("containers: [{name: a, image: a:1, " + hot + "}, {name: a-2, image: a:1}]"), []string{"spec.containers[1].name", "Duplicate"}},
		"twin of what runs once":     {log("initContainers: [{name: a, image: a:1, " + hot + "}], containers: [{name: a-2, image: a:1}]"), nil},
		"unknown volume":             {log("containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}]}]"), []string{"spec.containers[0].volumeMounts[0].name", "Not found"}},
		"volume of the SidecarSet":   {log("volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}]}]"), nil},
		"volume of the pod":          {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}]}]"), nil},
		"volume of both":             {log("podVolumes: [v], volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: a:1}]"), []string{"spec.podVolumes[0]"}},
		"path twice":                 {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v/}]}]"), []string{"volumeMounts[1].mountPath", "Duplicate"}},
		"path twice, a slash first":  {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v/}, {name: v, mountPath: /v}]}]"), []string{"volumeMounts[1].mountPath", "Duplicate"}},
		"native sidecar":             {log("containers: [{name: a, image: a:1, restartPolicy: Always}]"), []string{"spec.containers[0].restartPolicy"}},
		"startup probe":              {log("containers: [{name: a, image: a:1, startupProbe: {httpGet: {port: 80}}}]"), nil},
		"variable":                   {log("containers: [{name: a, image: a:1, env: [{name: A=B}]}]"), []string{"env[0].name"}},
		"expression":                 {log("containers: [{name: a, image: a:1, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: memory}}}}]"), []string{"resourcesPolicy.resourcesExpr.limits.cpu", "unknown name memory"}},
		"pattern of the policy":      {log("containers: [{name: a, image: a:1, resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: '(', resourcesExpr: {limits: {cpu: cpu}}}}]"), []string{"targetContainersNameRegex"}},
		"policy of what runs once":   {log("initContainers: [{name: a, image: a:1, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}}}]"), []string{"spec.initContainers[0].resourcesPolicy"}},
		"pattern of patchContainers": {log("patchContainers: [{nameRegex: '(', env: [{name: A}]}]"), []string{"patchContainers[0].nameRegex"}},
		"reserved annotation":        {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {kruise.io/sidecarset-hash: x}}]"), []string{"patchPodMetadata[0].annotations[kruise.io/sidecarset-hash]", "reserved"}},
		"key twice":                  {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {k: x}}, {annotations: {k: y}, patchPolicy: Overwrite}]"), []string{"patchPodMetadata[1].annotations[k]", "Duplicate"}},
		"label of the selector":      {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {app: y}, patchPolicy: Overwrite}]"), []string{"patchPodMetadata[0].labels[app]", "selector"}},
		"version label of selector":  {log("containers: [{name: a, image: a:1, versionLabel: app}]"), []string{"versionLabel app"}},
		"value of a label":           {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {k: 'a b'}}]"), []string{"patchPodMetadata[0].labels"}},
		"namespaceSelector":          {log("containers: [{name: a, image: a:1}], namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}"), []string{"spec.namespaceSelector.matchExpressions[0].operator"}},
		"selector of the update":     {log("containers: [{name: a, image: a:1}], updateStrategy: {selector: {matchExpressions: [{key: a, operator: Is}]}}"), []string{"spec.updateStrategy.selector.matchExpressions[0].operator"}},
		"selector of a weight":       {log("containers: [{name: a, image: a:1}], updateStrategy: {priorityStrategy: {weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: a, operator: Is}]}}]}}"), []string{"weightPriority[0].matchSelector.matchExpressions[0].operator"}},
		"value and valueFrom":        {log("containers: [{name: a, image: a:1, env: [{name: A, value: x}, {name: B, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]"), []string{"env[1].valueFrom", "together with value"}},
		"valueFrom alone":            {log("containers: [{name: a, image: a:1, env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]"), nil},
		"variable of patches":        {log("patchContainers: [{env: [{name: A=B}]}]"), []string{"patchContainers[0].env[0].name"}},
		"mount of patches":           {log("patchContainers: [{volumeMounts: [{name: v, mountPath: /v}]}]"), []string{"patchContainers[0].volumeMounts[0].name", "Not found"}},
		"mount without a path":       {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: ''}]}]"), []string{"volumeMounts[0].mountPath", "Required"}},
		"subPath twice":              {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v, subPath: a, subPathExpr: b}]}]"), []string{"volumeMounts[0].subPathExpr", "together with subPath"}},
		"subPath":                    {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v, subPath: a}, {name: v, mountPath: /w, subPathExpr: b}]}]"), nil},
		"device of no volume":        {log("containers: [{name: a, image: a:1, volumeDevices: [{name: v, devicePath: /v}]}]"), []string{"volumeDevices[0].name", "Not found"}},
		"key of an annotation":       {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {'a b': x}}]"), []string{"annotations[a b]"}},
		"annotation of selector":     {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {app: y}, patchPolicy: Overwrite}]"), nil},
		"another version label":      {log("containers: [{name: a, image: a:1, versionLabel: version}]"), nil},
		"label in an expression":     {"metadata: {name: log}\nspec: {selector: {matchExpressions: [{key: b, operator: Exists}, {key: app, operator: Exists}]}, containers: [{name: a, image: a:1, versionLabel: app}]}", []string{"versionLabel app"}},
		"label in no expression":     {"metadata: {name: log}\nspec: {selector: {matchExpressions: [{key: b, operator: Exists}]}, containers: [{name: a, image: a:1, versionLabel: app}]}", nil},
		"image of spaces":            {log("containers: [{name: a, image: ' '}]"), []string{"spec.containers[0].image", "Required"}},
		"image of an init container": {log("initContainers: [{name: a}]"), []string{"spec.initContainers[0].image", "Required"}},
		"mount and device at a path": {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}], volumeDevices: [{name: v, devicePath: /v}]}]"), []string{"volumeDevices[0].devicePath", "Duplicate"}},
		"device without a path":      {log("podVolumes: [v], containers: [{name: a, image: a:1, volumeDevices: [{name: v, devicePath: ''}]}]"), []string{"volumeDevices[0].devicePath", "Required"}},
		"mount of an init container": {log("initContainers: [{name: a, image: a:1, volumeMounts: [{name: v, mountPath: /v}]}]"), []string{"spec.initContainers[0].volumeMounts[0].name", "Not found"}},
		"native label of selector":   {log("initContainers: [{name: a, image: a:1, restartPolicy: Always, versionLabel: app}]"), []string{"versionLabel app of container a"}},
		"reserved version":           {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {version.sidecarset.kruise.io/a: x}}]"), []string{"reserved"}},
		"reserved other version":     {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {versionalt.sidecarset.kruise.io/a: x}}]"), []string{"reserved"}},
		"reserved by Refit":          {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {sidecarset.refit.dev/x: y}}]"), []string{"patchPodMetadata[0].labels[sidecarset.refit.dev/x]", "reserved"}},
		"a label twice":              {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {k: x}}, {labels: {k: x}}]"), []string{"patchPodMetadata[1].labels[k]", "Duplicate"}},
		"a label and an annotation":  {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {k: x}, annotations: {k: x}}]"), nil},
		"capitals in an annotation":  {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {Example.com/A: x}}]"), nil},
		"labels without a selector":  {"metadata: {name: log}\nspec: {containers: [{name: a, image: a:1, versionLabel: app}], patchPodMetadata: [{labels: {k: x}}]}", nil},
		"operator of a selector":     {"metadata: {name: log}\nspec: {selector: {matchExpressions: [{key: a, operator: Is}]}, containers: [{name: a, image: a:1}]}", []string{"spec.selector.matchExpressions[0].operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.Check(set(t, tc.set), nil, nil).ToAggregate()
			if len(tc.want) == 0 && got != nil {
				t.Errorf("refused: %v", got)
			}
			for _, words := range tc.want {
				if got == nil || !strings.Contains(got.Error(), words) {
					t.Errorf("got %v, want an error with %q", got, words)
				}
			}
		})
	}
}

// One that was made before this was refused can still be changed, also so that it is repaired.
func TestASidecarSetWhoseImageIsTheEmptyOneCanStillBeChanged(t *testing.T) {
	t.Parallel()
	of := func(image, paused string) *v1beta1.SidecarSet {
		return set(t, log("containers: [{name: a, image: "+image+", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e:1}}], updateStrategy: {paused: "+paused+"}"))
	}
	if errs := admission.Check(of("e:1", "true"), of("e:1", "false"), nil); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := admission.Check(of("a:1", "false"), of("e:1", "false"), nil); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := admission.Check(of("e:1", "false"), of("a:1", "false"), nil); len(errs) != 1 {
		t.Error(errs)
	}
}

// A label of a ControllerRevision has the name, and another one the version: without revisions nothing is rolled out.
func TestNamesThatCannotBeLabelsAreRefused(t *testing.T) {
	t.Parallel()
	const rest = "{selector: {matchLabels: {app: web}}, containers: [{name: a, image: a:1}]"
	named := func(name, version string) string {
		return "metadata: {name: " + name + "}\nspec: " + rest + ", customVersion: '" + version + "'}"
	}
	for name, tc := range map[string]struct{ set, want string }{
		"longest":         {named(strings.Repeat("a", 63), strings.Repeat("v", 63)), ""},
		"generated":       {"metadata: {generateName: log-}\nspec: " + rest + "}", ""},
		"too long":        {named(strings.Repeat("a", 64), ""), "metadata.name: Invalid value"},
		"with a dot":      {named("a.b", ""), "metadata.name: Invalid value"},
		"long version":    {named("a", strings.Repeat("v", 64)), "spec.customVersion: Invalid value"},
		"version's words": {named("a", "v 1"), "spec.customVersion: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t, tc.set)
			got := admission.Check(s, nil, nil).ToAggregate()
			if (tc.want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
			if got := admission.Check(s, s, nil); len(got) > 0 {
				t.Errorf("a SidecarSet that exists cannot be changed: %v", got)
			}
		})
	}
}

func TestClashesBetweenSidecarSetsAreRefused(t *testing.T) {
	t.Parallel()
	const exists = "metadata: {name: other}\nspec: {selector: {matchExpressions: [{key: inject, operator: Exists}]}, "
	const apart = "metadata: {name: other}\nspec: {selector: {matchLabels: {app: db}}, "
	for name, tc := range map[string]struct{ set, other, want string }{
		// OpenKruise takes a label that must exist and another label for disjoint, and accepts this.
		"container, selectors with different keys": {log("containers: [{name: a, image: a:1}]"), exists + "containers: [{name: a, image: a:1}]}", "has a container a"},
		"container, no pod has both":               {log("containers: [{name: a, image: a:1}]"), apart + "containers: [{name: a, image: a:1}]}", ""},
		"init container and container":             {log("containers: [{name: a, image: a:1}]"), exists + "initContainers: [{name: a, image: a:1}]}", "has a container a"},
		"container for hot upgrades": {
			log("containers: [{name: a-1, image: a:1}]"),
			exists + "containers: [{name: a, image: a:1, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e:1}}]}", "has a container a-1",
		},
		"same volume":    {log("containers: [{name: a, image: a:1}], volumes: [{name: v, emptyDir: {}}]"), exists + "containers: [{name: b, image: a:1}], volumes: [{name: v, emptyDir: {}}]}", ""},
		"another volume": {log("containers: [{name: a, image: a:1}], volumes: [{name: v, emptyDir: {}}]"), exists + "containers: [{name: b, image: a:1}], volumes: [{name: v, hostPath: {path: /}}]}", "another volume v"},
		"the same volume, one with its defaults": {
			log("containers: [{name: a, image: a:1}], volumes: [{name: v, secret: {secretName: s}}]"),
			exists + "containers: [{name: b, image: a:1}], volumes: [{name: v, secret: {secretName: s, defaultMode: 420}}]}", "",
		},
		"label, both overwrite it": {
			log("containers: [{name: a, image: a:1}], patchPodMetadata: [{labels: {k: x}, patchPolicy: Overwrite}]"),
			exists + "containers: [{name: b, image: a:1}], patchPodMetadata: [{labels: {k: x}, patchPolicy: Overwrite}]}", "spec.patchPodMetadata[0].labels[k]",
		},
		"service account": {
			strings.Replace(log("containers: [{name: a, image: a:1}]"), "name: log", "name: log, annotations: {sidecarset.refit.dev/service-account: a}", 1),
			strings.Replace(exists+"containers: [{name: b, image: a:1}]}", "name: other", "name: other, annotations: {sidecarset.refit.dev/service-account: b}", 1), "asks for service account b",
		},
		"annotation": {log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {k: x}}]"), exists + "containers: [{name: b, image: a:1}], patchPodMetadata: [{annotations: {k: x}, patchPolicy: Overwrite}]}", "sets k as well"},
		"annotation, both overwrite it": {
			log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {k: x}, patchPolicy: Overwrite}]"),
			exists + "containers: [{name: b, image: a:1}], patchPodMetadata: [{annotations: {k: x}, patchPolicy: Overwrite}]}", "sets k as well",
		},
		"annotation, kept by both": {
			log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {k: x}}]"),
			exists + "containers: [{name: b, image: a:1}], patchPodMetadata: [{annotations: {k: y}, patchPolicy: Retain}]}", "",
		},
		"annotation, merged by both": {
			log("containers: [{name: a, image: a:1}], patchPodMetadata: [{annotations: {k: '{}'}, patchPolicy: MergePatchJson}]"),
			exists + "containers: [{name: b, image: a:1}], patchPodMetadata: [{annotations: {k: '{}'}, patchPolicy: MergePatchJson}]}", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := set(t, tc.set), set(t, tc.other)
			got := admission.Check(s, nil, []*v1beta1.SidecarSet{other}).ToAggregate()
			if (tc.want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
			if got := admission.Check(s, s, []*v1beta1.SidecarSet{other}); len(got) > 0 {
				t.Errorf("a clash that was there before keeps the SidecarSet from being changed: %v", got)
			}
		})
	}
}

func TestCanaries(t *testing.T) {
	t.Parallel()
	canary := func(name, base, kind string) string {
		return "metadata: {name: " + name + ", annotations: {apps.kruise.io/sidecarset-canary: 'true', apps.kruise.io/sidecarset-base: '" + base + "'}}\n" +
			"spec: {selector: {matchLabels: {app: web}}, containers: [{name: a, image: a:2}], updateStrategy: {type: " + kind + "}}"
	}
	base := set(t, log("containers: [{name: a, image: a:1}]"))
	other := set(t, canary("other", "log", "NotUpdate"))
	for name, tc := range map[string]struct{ set, old, want string }{
		"has the containers of its base": {set: canary("new", "log", "NotUpdate")},
		"without a base is none":         {set: strings.Replace(canary("new", "", "RollingUpdate"), "name: a,", "name: b,", 1)},
		"without a base replaces none":   {set: canary("new", "", "RollingUpdate"), want: "SidecarSet log"},
		"none any more":                  {set: "metadata: {name: new}\nspec: {}", old: canary("new", "log", "NotUpdate")},
		"none any more, in its place":    {set: strings.Replace(canary("new", "log", "NotUpdate"), "'true'", "'false'", 1), old: canary("new", "log", "NotUpdate"), want: "SidecarSet log"},
		"of itself":                      {set: canary("new", "new", "NotUpdate"), want: "its own base"},
		"of one that does not exist":     {set: canary("new", "none", "NotUpdate"), want: "Not found"},
		"of a canary":                    {set: canary("new", "other", "NotUpdate"), want: "a canary itself"},
		"that is rolled out":             {set: canary("new", "log", "RollingUpdate"), want: "must be NotUpdate"},
		"no canary, with another base":   {set: "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-base: b}}\nspec: {}", old: "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-base: a}}\nspec: {}"},
		"with another base":              {set: canary("new", "other", "NotUpdate"), old: canary("new", "log", "NotUpdate"), want: "cannot be changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var old *v1beta1.SidecarSet
			others := []*v1beta1.SidecarSet{base}
			if tc.old != "" {
				old = set(t, tc.old)
			}
			if strings.Contains(tc.set, "base: 'other'") {
				others = append(others, other)
			}
			got := admission.Check(set(t, tc.set), old, others).ToAggregate()
			if (tc.want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

func TestTheLabelFollowsTheFailurePolicy(t *testing.T) {
	t.Parallel()
	s := set(t, log("injectionStrategy: {failurePolicy: Fail}, containers: [{name: a, image: a:1}]"))
	admission.Complete(s, nil)
	if s.Labels[v1beta1.LabelInjectionFailurePolicy] != "Fail" {
		t.Errorf("labels %v", s.Labels)
	}
	s.Spec.InjectionStrategy.FailurePolicy = v1beta1.InjectionIgnore
	admission.Complete(s, nil)
	if len(s.Labels) > 0 {
		t.Errorf("labels %v", s.Labels)
	}
	s.Spec.InjectionStrategy.FailurePolicy = "" // as a client of v1alpha1 sends it, which does not have the field
	s.Labels = map[string]string{v1beta1.LabelInjectionFailurePolicy: "Fail"}
	if admission.Complete(s, nil); s.Labels[v1beta1.LabelInjectionFailurePolicy] != "Fail" {
		t.Errorf("labels %v", s.Labels)
	}
}
