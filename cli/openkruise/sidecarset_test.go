package openkruise_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

// pin names a revision, or a version.
func pin(name, version string) func(*v1beta1.SidecarSet) {
	return func(set *v1beta1.SidecarSet) {
		set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: &name, CustomVersion: &version, Policy: v1beta1.RevisionAlways}
	}
}

func progress(matched, updated int32, strategy v1beta1.SidecarSetUpdateStrategy) func(*v1beta1.SidecarSet) {
	return func(set *v1beta1.SidecarSet) {
		set.Status.MatchedPods, set.Status.UpdatedPods = matched, updated
		set.Spec.UpdateStrategy = strategy
	}
}

func TestSidecarSets(t *testing.T) {
	t.Parallel()
	const (
		perWorkload = "updateStrategy.maxUnavailable is 50%: Refit keeps one pod of each workload available, counts what others do to the pods, and asks PodDisruptionBudgets"
		three       = "updateStrategy.maxUnavailable is 3: Refit keeps one pod of each workload available, counts what others do to the pods, and asks PodDisruptionBudgets"
		native      = "initContainer mesh is a native sidecar: OpenKruise refuses it with updateStrategy.type RollingUpdate when the SidecarSet is written"
		startup     = "the startup probe of agent has no successThreshold: 1, or no scheme: OpenKruise refuses it when the SidecarSet is written"
		service     = `a gRPC probe of agent has service: "": OpenKruise has another hash for it, so pods that Refit has injected cannot be updated in place`
		hash        = "its annotation kruise.io/sidecarset-hash does not match its spec, and kruise-manager would consider its pods outdated"
		half        = "a rollout is under way: 1 of 4 pods are updated"
		keys        = "patchPodMetadata: kruise-manager accepts only the keys of its allowlist when the SidecarSet is written; Refit accepts all"
		allowlist   = "patchPodMetadata: OpenKruise refuses the SidecarSet when it is written, unless the allowlist of kruise-manager has the keys"
		elsewhere   = "spec.namespace: OpenKruise does not have the field, and selects by the namespaceSelector alone"
		again       = "if it were created again Refit would refuse it: spec."
		name        = "its name has a dot or more than 63 characters: Refit injects it, and does not roll it out"
		policy      = "resourcesPolicy of agent: Refit rounds results up, and keeps a constant limit beside containers without one"
	)
	most := func(n intstr.IntOrString) func(*v1beta1.SidecarSet) {
		return func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.MaxUnavailable = &n }
	}
	probe := func(probe corev1.Probe) func(*v1beta1.SidecarSet) {
		return func(set *v1beta1.SidecarSet) { set.Spec.Containers[0].StartupProbe = &probe }
	}
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	get := func(scheme corev1.URIScheme) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Scheme: scheme}}
	}
	mesh := func(set *v1beta1.SidecarSet) {
		set.Spec.InitContainers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}
	}
	for title, tc := range map[string]struct {
		change   []func(*v1beta1.SidecarSet)
		to, from []string
	}{
		"without differences":                {},
		"several pods at a time, in percent": {change: []func(*v1beta1.SidecarSet){most(intstr.FromString("50%"))}, to: []string{perWorkload}},
		"several pods at a time":             {change: []func(*v1beta1.SidecarSet){most(intstr.FromInt32(3))}, to: []string{three}},
		"one pod at a time":                  {change: []func(*v1beta1.SidecarSet){most(intstr.FromInt32(1))}},
		"several pods of no rollout": {change: []func(*v1beta1.SidecarSet){most(intstr.FromInt32(3)), func(set *v1beta1.SidecarSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate
		}}},
		"native sidecar": {change: []func(*v1beta1.SidecarSet){mesh}, from: []string{native}},
		"native sidecar of no rollout": {change: []func(*v1beta1.SidecarSet){mesh, func(set *v1beta1.SidecarSet) {
			set.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate
		}}},
		"init container":                    {change: []func(*v1beta1.SidecarSet){mesh, func(set *v1beta1.SidecarSet) { set.Spec.InitContainers[0].RestartPolicy = nil }}},
		"startup probe without a threshold": {change: []func(*v1beta1.SidecarSet){probe(corev1.Probe{ProbeHandler: exec})}, from: []string{startup}},
		"startup probe without a scheme":    {change: []func(*v1beta1.SidecarSet){probe(corev1.Probe{ProbeHandler: get(""), SuccessThreshold: 1})}, from: []string{startup}},
		"complete startup probe":            {change: []func(*v1beta1.SidecarSet){probe(corev1.Probe{ProbeHandler: get("HTTP"), SuccessThreshold: 1})}},
		"startup probe with an empty service": {change: []func(*v1beta1.SidecarSet){probe(corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80, Service: new("")}}, SuccessThreshold: 1,
		}), func(set *v1beta1.SidecarSet) {
			set.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: "another"}
		}}, from: []string{service}},
		"hash of another spec": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			set.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: "another"}
		}}, from: []string{hash}},
		"rollout under way":                   {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{})}, to: []string{half}, from: []string{half}},
		"rollout that has ended":              {change: []func(*v1beta1.SidecarSet){progress(4, 4, v1beta1.SidecarSetUpdateStrategy{})}},
		"rollout that is paused":              {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{Paused: true})}},
		"no rollout":                          {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{Type: v1beta1.SidecarSetNotUpdate})}},
		"rollout that waits at its partition": {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{Partition: new(intstr.FromString("75%"))})}},
		"rollout to its partition": {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{Partition: new(intstr.FromInt32(1))})},
			to: []string{"a rollout is under way: 1 of 3 pods are updated"}, from: []string{"a rollout is under way: 1 of 3 pods are updated"}},
		"partition beyond the pods": {change: []func(*v1beta1.SidecarSet){progress(4, 0, v1beta1.SidecarSetUpdateStrategy{Partition: new(intstr.FromInt32(9))})}},
		"canary by a selector":      {change: []func(*v1beta1.SidecarSet){progress(4, 1, v1beta1.SidecarSetUpdateStrategy{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "1"}}})}},
		"metadata":                  {change: []func(*v1beta1.SidecarSet){withMetadata}, to: []string{keys}, from: []string{allowlist}},
		"one namespace":             {change: []func(*v1beta1.SidecarSet){namespace("shop", corev1.LabelMetadataName, "shop")}},
		"one of several namespaces": {change: []func(*v1beta1.SidecarSet){namespace("shop", "team", "a")}, from: []string{elsewhere}},
		"one namespace, as an earlier version of Refit stored it": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) { set.Spec.Namespace = "shop" }}, from: []string{elsewhere}},
		"no history": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) { set.Spec.RevisionHistoryLimit = new(int32(0)) }},
			to: []string{again + "revisionHistoryLimit: Invalid value: 0: must be between 1 and 1000"}},
		"more than all pods": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			set.Spec.UpdateStrategy.Partition = new(intstr.FromString("150%"))
		}}, to: []string{again + `updateStrategy.partition: Invalid value: "150%": must be a number, or a percentage of at most 100`}},
		"variables of no container": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			set.Spec.Containers[0].TransferEnv = []v1beta1.TransferEnvVar{{EnvName: "A"}, {SourceContainerName: "app", EnvName: "A"}, {SourceContainerName: "app"}}
		}}, to: []string{
			again + "containers[0].transferEnv[0].sourceContainerName: Required value: or sourceContainerNameFrom",
			again + "containers[0].transferEnv[2].envName: Required value: or envNames",
		}},
		"hot upgrades without an empty image": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			set.Spec.Containers[0].UpgradeStrategy.UpgradeType = v1beta1.HotUpgrade
		}}, to: []string{again + "containers[0].upgradeStrategy.hotUpgradeEmptyImage: Required value: for upgradeType HotUpgrade"}},
		"many volumes": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			for i := range 65 {
				set.Spec.Volumes = append(set.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
		}}, to: []string{again + "volumes: Too many: 65: must have at most 64 items"}},
		"name with a dot": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) { set.Name = "log.v2" }}, to: []string{name, "if it were created again Refit would refuse it: metadata.name: Invalid value: \"log.v2\": must be at most 63 letters, digits and '-'"}},
		"name that is too long": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) { set.Name = strings.Repeat("a", 64) }}, to: []string{
			name, "if it were created again Refit would refuse it: metadata.name: Invalid value: \"" + strings.Repeat("a", 64) + "\": must be at most 63 letters, digits and '-'",
		}},
		"several pods of a workload at a time": {change: []func(*v1beta1.SidecarSet){most(intstr.FromInt32(3)), func(set *v1beta1.SidecarSet) {
			set.Spec.UpdateStrategy.MaxUnavailablePerWorkload = new(intstr.FromString("100%"))
		}}, from: []string{"updateStrategy.maxUnavailablePerWorkload: all pods of a workload may be updated at a time, as far as maxUnavailable allows"}},
		"long name": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) { set.Name = strings.Repeat("a", 63) }}},
		"resources computed": {change: []func(*v1beta1.SidecarSet){func(set *v1beta1.SidecarSet) {
			set.Spec.Containers[0].ResourcesPolicy = &v1beta1.ResourcesPolicy{TargetContainersMode: v1beta1.TargetContainersSum, ResourcesExpr: v1beta1.ResourcesExpr{Limits: &v1beta1.ResourceExprList{CPU: "cpu*50%"}}}
		}}, to: []string{policy}, from: []string{policy}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			set := newSet(tc.change...)
			expect(t, clusterOf(set).OfSidecarSet(set), tc.to, tc.from)
		})
	}
}

// namespace limits a SidecarSet to a namespace, beside a selector of namespaces.
func namespace(name, key, value string) func(*v1beta1.SidecarSet) {
	return func(set *v1beta1.SidecarSet) {
		set.Spec.Namespace = name
		set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func withMetadata(set *v1beta1.SidecarSet) {
	set.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{Annotations: map[string]string{"example.com/a": "b"}, PatchPolicy: v1beta1.PatchRetain}}
}

func TestMetadataIsLimitedByWhatKruiseManagerAllows(t *testing.T) {
	t.Parallel()
	set := newSet(withMetadata)
	lines := func(c *openkruise.Cluster) int { return len(c.OfSidecarSet(set)) }
	c := clusterOf(set)
	c.Gates = openkruise.Gates(managerWith("--feature-gates=AllAlpha=true"))
	if n := lines(c); n != 0 {
		t.Errorf("with the gate, %d differences", n)
	}
	c.Allowlist = true // it is used even with the gate
	if n := lines(c); n != 2 {
		t.Errorf("with the gate and an allowlist, %d differences", n)
	}
	c.Gates = nil // there is no kruise-manager to be seen
	if n := lines(c); n != 0 {
		t.Errorf("without kruise-manager, %d differences", n)
	}
}

func TestPinnedRevisions(t *testing.T) {
	t.Parallel()
	const (
		to   = "injectionStrategy.revision names a revision of kruise-manager's namespace: without it new pods get the newest version"
		from = "injectionStrategy.revision names a revision that kruise-manager does not see: it refuses the SidecarSet when it is written, and new pods"
	)
	known := openkruise.Revisions{"log-1": {SidecarSet: "log", CustomVersion: "stable"}, "mesh-1": {SidecarSet: "mesh", CustomVersion: "beta"}}
	none := openkruise.Revisions{}
	for name, tc := range map[string]struct {
		pin          func(*v1beta1.SidecarSet)
		theirs, ours openkruise.Revisions
		to, from     []string
	}{
		"by name":                        {pin: pin("log-1", ""), theirs: known, ours: none, to: []string{to}},
		"by version":                     {pin: pin("", "stable"), theirs: known, ours: none, to: []string{to}},
		"name counts before the version": {pin: pin("log-2", "stable"), theirs: known, ours: none},
		"of another SidecarSet":          {pin: pin("mesh-1", ""), theirs: known, ours: none},
		"version of another SidecarSet":  {pin: pin("", "beta"), theirs: known, ours: none},
		"taken over":                     {pin: pin("log-1", ""), theirs: known, ours: known},
		"back":                           {pin: pin("log-1", ""), theirs: none, ours: known, from: []string{from}},
		"nowhere":                        {pin: pin("log-1", ""), theirs: none, ours: none},
		"by nothing":                     {pin: pin("", ""), theirs: openkruise.Revisions{"log-1": {SidecarSet: "log", CustomVersion: "stable"}}, ours: none},
		"back, taken over before":        {pin: pin("log-1", ""), theirs: known, ours: known},
		"not pinned":                     {pin: func(*v1beta1.SidecarSet) {}, theirs: known, ours: none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet(tc.pin)
			c := clusterOf(set)
			c.Theirs, c.Ours = tc.theirs, tc.ours
			expect(t, c.OfSidecarSet(set), tc.to, tc.from)
		})
	}
}

func TestRevisionsOfTheOtherManager(t *testing.T) {
	t.Parallel()
	revisions := openkruise.Revisions{}
	revisions.Add(&metav1.ObjectMeta{Name: "log-1", Labels: map[string]string{v1beta1.LabelSidecarSetName: "log", v1beta1.LabelSidecarSetCustomVersion: "stable"}})
	revisions.Add(&metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}})
	if len(revisions) != 1 || revisions["log-1"] != (openkruise.RevisionOf{SidecarSet: "log", CustomVersion: "stable"}) {
		t.Fatalf("%+v", revisions)
	}
	c := clusterOf()
	c.Theirs = revisions
	expect(t, c.OfRevisions("kruise-system", "refit-system", false), []string{"1 revision is in namespace kruise-system alone, and refit-manager reads its own"}, nil)
	expect(t, c.OfRevisions("kruise-system", "refit-system", true), nil, nil)
	c.Ours = revisions
	expect(t, c.OfRevisions("kruise-system", "refit-system", false), nil, nil)
	c.Theirs = nil
	expect(t, c.OfRevisions("kruise-system", "refit-system", true), nil, nil)
	expect(t, c.OfRevisions("kruise-system", "refit-system", false), nil,
		[]string{"1 revision is in namespace refit-system alone, and kruise-manager reads its own: the history begins again"})
}

func TestSidecarSetThatClashesWithAnotherIsRefusedIfItIsCreatedAgain(t *testing.T) {
	t.Parallel()
	set := newSet()
	other := newSet(func(set *v1beta1.SidecarSet) { set.Name = "audit" })
	found := differs(openkruise.ToRefit, clusterOf(set, other).OfSidecarSet(set))
	if len(found) != 1 || !strings.Contains(found[0], "SidecarSet audit, which can select the same pods, has a container agent") {
		t.Errorf("%q", found)
	}
}
