package openkruise

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/admission"
	"github.com/refit-project/refit/sidecarset/revision"
)

// OfSidecarSet returns the differences for a SidecarSet.
func (c *Cluster) OfSidecarSet(set *v1beta1.SidecarSet) []Difference {
	o := of{kind: v1beta1.KindSidecarSet, name: set.Name}
	if containers := withPolicy(set); len(containers) > 0 {
		o.both("resourcesPolicy of "+strings.Join(containers, ", ")+": Refit rounds results up, and keeps a constant limit beside containers without one",
			"look at what new pods get under Refit with refit-manager sidecarset render")
	}
	if updated, wanted, is := rollingOut(set); is {
		o.both(fmt.Sprintf("a rollout is under way: %d of %d pods are updated", updated, wanted),
			"wait until it has ended, or set updateStrategy.paused; otherwise the other manager goes on with it, within its own limits")
	}
	c.sidecarSetToRefit(&o, set)
	c.sidecarSetFromRefit(&o, set)
	return o.found
}

// rollingOut returns how many of the wanted pods are updated, and whether the rollout is in progress.
func rollingOut(set *v1beta1.SidecarSet) (updated, wanted int, is bool) {
	strategy, status := &set.Spec.UpdateStrategy, &set.Status
	if !rolled(set) || strategy.Paused || strategy.Selector != nil {
		return 0, 0, false // pods outside of the selector are not counted separately
	}
	matched := int(status.MatchedPods)
	kept := 0
	if strategy.Partition != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(strategy.Partition, matched, true); err == nil {
			kept = min(n, matched)
		}
	}
	updated, wanted = int(status.UpdatedPods), matched-kept
	return updated, wanted, updated < wanted
}

// sidecarSetToRefit adds what Refit interprets differently.
func (c *Cluster) sidecarSetToRefit(o *of, set *v1beta1.SidecarSet) {
	if len(set.Name) > validation.LabelValueMaxLength || strings.Contains(set.Name, ".") {
		o.to("its name has a dot or more than 63 characters: Refit injects it, and does not roll it out", "create it again under another name")
	}
	if most := set.Spec.UpdateStrategy.MaxUnavailable; rolled(set) && several(most) && set.Spec.UpdateStrategy.MaxUnavailablePerWorkload == nil {
		o.to("updateStrategy.maxUnavailable is "+most.String()+": Refit keeps one pod of each workload available, counts what others do to the pods, and asks PodDisruptionBudgets",
			"set updateStrategy.maxUnavailablePerWorkload to 100% afterwards if all pods of a workload may be updated at a time")
	}
	if pin := set.Spec.InjectionStrategy.Revision; pin != nil && c.Theirs.pinned(set) && !c.Ours.pinned(set) {
		o.to("injectionStrategy.revision names a revision of kruise-manager's namespace: without it new pods get the newest version", "set openkruise.revisions=true")
	}
	if c.limitsMetadata(set) {
		o.to("patchPodMetadata: kruise-manager accepts only the keys of its allowlist when the SidecarSet is written; Refit accepts all",
			"limit who may write SidecarSets, or check the keys by a ValidatingAdmissionPolicy")
	}
	for _, field := range podFields {
		if value := set.Annotations[field.annotation]; value != "" {
			o.to("its annotation "+field.annotation+": "+short(value)+" has an effect with Refit: "+field.effect, "remove it, unless that is wanted")
		}
	}
	for i := range set.Spec.Containers {
		c.ofJobs(o, &set.Spec.Containers[i].Container)
	}
	for _, err := range append(admission.Check(set, nil, c.SidecarSets), schemaErrors(&set.Spec)...) {
		o.to("if it were created again Refit would refuse it: "+short(err.Error()), "change the manifest; what is stored stays, and can be changed otherwise")
	}
}

// limitsMetadata reports whether kruise-manager accepts a part of the keys of patchPodMetadata, or none. It uses an
// allowlist even if its feature gate allows all keys.
func (c *Cluster) limitsMetadata(set *v1beta1.SidecarSet) bool {
	return len(set.Spec.PatchPodMetadata) > 0 && c.Gates != nil && (c.Allowlist || !c.Gates[gatePatch])
}

// podFields are annotations by which a SidecarSet of Refit sets fields of pods. OpenKruise ignores them, and did not check
// who may write them.
var podFields = []struct{ annotation, effect string }{
	{v1beta1.AnnotationSidecarSetServiceAccount, "new pods with the account default get this one"},
	{v1beta1.AnnotationSidecarSetShareProcesses, "the containers of new pods share a process namespace"},
}

// several reports whether more than one pod may be unavailable.
func several(most *intstr.IntOrString) bool {
	return most != nil && (most.Type == intstr.String || most.IntVal > 1)
}

func withPolicy(set *v1beta1.SidecarSet) []string {
	var names []string
	for _, c := range containersOf(&set.Spec) {
		if c.ResourcesPolicy != nil {
			names = append(names, short(c.Name))
		}
	}
	return names
}

// containersOf returns pointers to the containers and init containers of a spec.
func containersOf(spec *v1beta1.SidecarSetSpec) []*v1beta1.SidecarContainer {
	all := make([]*v1beta1.SidecarContainer, 0, len(spec.InitContainers)+len(spec.Containers))
	for _, list := range [][]v1beta1.SidecarContainer{spec.InitContainers, spec.Containers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// sidecarSetFromRefit adds what OpenKruise removes, refuses or interprets differently.
func (c *Cluster) sidecarSetFromRefit(o *of, set *v1beta1.SidecarSet) {
	for _, field := range ownFields() {
		if field.used(&set.Spec) {
			o.from(field.path+": "+field.without, field.do)
		}
	}
	for _, field := range podFields {
		if set.Annotations[field.annotation] != "" {
			o.from("its annotation "+field.annotation+" has no effect", "write what it asks for into the templates of the workloads")
		}
	}
	if c.limitsMetadata(set) {
		o.from("patchPodMetadata: OpenKruise refuses the SidecarSet when it is written, unless the allowlist of kruise-manager has the keys",
			"add them to ConfigMap kruise-configuration, or switch the feature gate "+gatePatch+" on if there is no allowlist")
	}
	if namespace := set.Spec.Namespace; namespace != "" && !onlyNamespace(set.Spec.NamespaceSelector, namespace) {
		o.from("spec.namespace: OpenKruise does not have the field, and selects by the namespaceSelector alone",
			"select the namespace by its label "+corev1.LabelMetadataName+" in the namespaceSelector")
	}
	for i := range set.Spec.InitContainers {
		if container := &set.Spec.InitContainers[i]; revision.Native(container) && rolled(set) {
			o.from("initContainer "+short(container.Name)+" is a native sidecar: OpenKruise refuses it with updateStrategy.type RollingUpdate when the SidecarSet is written",
				"set updateStrategy.type to NotUpdate")
		}
	}
	for _, container := range containersOf(&set.Spec) {
		if incomplete(container.StartupProbe) {
			o.from("the startup probe of "+short(container.Name)+" has no successThreshold: 1, or no scheme: OpenKruise refuses it when the SidecarSet is written", "write both")
		}
		if emptyService(container) {
			o.from("a gRPC probe of "+short(container.Name)+` has service: "": OpenKruise has another hash for it, so pods that Refit has injected cannot be updated in place`,
				"remove the service, which means the same, and wait until the rollout has ended")
		}
	}
	empty := slices.ContainsFunc(containersOf(&set.Spec), emptyService) // its hash differs with OpenKruise in any case
	if set.Annotations[v1beta1.AnnotationSidecarSetHash] != revision.HashesOf(&set.Spec).Full && !empty {
		o.from("its annotation "+v1beta1.AnnotationSidecarSetHash+" does not match its spec, and kruise-manager would consider its pods outdated",
			"write the SidecarSet once, for example with kubectl annotate, while refit-manager runs")
	}
	if pin := set.Spec.InjectionStrategy.Revision; pin != nil && c.Ours.pinned(set) && !c.Theirs.pinned(set) {
		o.from("injectionStrategy.revision names a revision that kruise-manager does not see: it refuses the SidecarSet when it is written, and new pods",
			"set openkruise.revisions=true, which copies it, or remove injectionStrategy.revision")
	}
}

// onlyNamespace reports whether a selector selects no other namespace than this one.
func onlyNamespace(selector *metav1.LabelSelector, namespace string) bool {
	return selector != nil && selector.MatchLabels[corev1.LabelMetadataName] == namespace
}

func incomplete(probe *corev1.Probe) bool {
	return probe != nil && (probe.SuccessThreshold != 1 || probe.HTTPGet != nil && probe.HTTPGet.Scheme == "")
}

func emptyService(container *v1beta1.SidecarContainer) bool {
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil && probe.GRPC != nil && probe.GRPC.Service != nil && *probe.GRPC.Service == "" {
			return true
		}
	}
	return false
}
