package openkruise

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
)

// Cluster has what decisions about single objects need of the cluster.
type Cluster struct {
	// Gates of kruise-manager; nil if none was found.
	Gates map[string]bool
	// Allowlist reports whether kruise-manager has an allowlist for patchPodMetadata.
	Allowlist bool
	// Namespaces are the labels of all namespaces, by name.
	Namespaces map[string]map[string]string
	// Excluded are the namespaces, beside kube-system, whose pods refit-manager does not inject because of its flags.
	Excluded []string
	// SidecarSets are all SidecarSets.
	SidecarSets []*v1beta1.SidecarSet
	// Revisions of SidecarSets in the namespaces of kruise-manager (Theirs) and of refit-manager (Ours).
	Theirs, Ours Revisions

	injectors []injector
}

// injector is a SidecarSet with what it adds to pods.
type injector struct {
	set        *v1beta1.SidecarSet
	selector   match.Selector
	containers []string
	volumes    []corev1.Volume // with their defaults; only those that a sidecar mounts
}

// Prepare compiles the SidecarSets. It has to be called after they are set.
func (c *Cluster) Prepare() {
	c.injectors = c.injectors[:0]
	for _, set := range c.SidecarSets {
		selector, err := match.NewSelector(&set.Spec)
		if err != nil {
			continue // the SidecarSet is one of the differences
		}
		in := injector{set: set, selector: selector}
		for i := range set.Spec.InitContainers {
			in.containers = append(in.containers, inject.ContainerNames(&set.Spec.InitContainers[i], true)...)
		}
		for i := range set.Spec.Containers {
			in.containers = append(in.containers, inject.ContainerNames(&set.Spec.Containers[i], false)...)
		}
		in.volumes = mounted(defaults.Completed(&set.Spec))
		c.injectors = append(c.injectors, in)
	}
}

// mounted returns the volumes of a SidecarSet that a sidecar mounts.
func mounted(spec *v1beta1.SidecarSetSpec) []corev1.Volume {
	names := map[string]bool{}
	for _, container := range containersOf(spec) {
		for _, mount := range container.VolumeMounts {
			names[mount.Name] = true
		}
		for _, device := range container.VolumeDevices {
			names[device.Name] = true
		}
	}
	return slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return !names[v.Name] })
}

// selecting returns the SidecarSets that select pods of a namespace with these labels.
func (c *Cluster) selecting(namespace string, podLabels map[string]string) []injector {
	var found []injector
	for _, in := range c.injectors {
		if in.selector.Pod(podLabels) && in.selector.Namespace(namespace, c.Namespaces[namespace]) {
			found = append(found, in)
		}
	}
	return found
}

// Rolled reports whether there is a SidecarSet whose pods are updated.
func (c *Cluster) Rolled() bool {
	return slices.ContainsFunc(c.SidecarSets, rolled)
}

func rolled(set *v1beta1.SidecarSet) bool {
	return set.Spec.UpdateStrategy.Type != v1beta1.SidecarSetNotUpdate
}

// Revisions are ControllerRevisions of SidecarSets in one namespace, by name.
type Revisions map[string]RevisionOf

// RevisionOf is the SidecarSet of a ControllerRevision, and the user's name of the version.
type RevisionOf struct{ SidecarSet, CustomVersion string }

// Add adds a ControllerRevision of a SidecarSet.
func (r Revisions) Add(revision metav1.Object) {
	labels := revision.GetLabels()
	if set := labels[v1beta1.LabelSidecarSetName]; set != "" {
		r[revision.GetName()] = RevisionOf{SidecarSet: set, CustomVersion: labels[v1beta1.LabelSidecarSetCustomVersion]}
	}
}

// pinned reports whether the revision that a SidecarSet names exists.
func (r Revisions) pinned(set *v1beta1.SidecarSet) bool {
	pin := set.Spec.InjectionStrategy.Revision
	for name, of := range r {
		switch {
		case of.SidecarSet != set.Name:
		case pin.RevisionName != nil && *pin.RevisionName != "":
			if name == *pin.RevisionName {
				return true
			}
		case pin.CustomVersion != nil && of.CustomVersion == *pin.CustomVersion:
			return true
		}
	}
	return false
}

// missing counts the revisions that other does not have.
func (r Revisions) missing(other Revisions) int {
	n := 0
	for name := range r {
		if _, found := other[name]; !found {
			n++
		}
	}
	return n
}

// OfRevisions returns the differences by the namespaces of ControllerRevisions. shared means that refit-manager copies them
// in both directions.
func (c *Cluster) OfRevisions(theirs, ours string, shared bool) []Difference {
	o := of{kind: "ControllerRevisions of SidecarSets"}
	if n := c.Theirs.missing(c.Ours); n > 0 && !shared {
		o.to(wording.Count(n, "revision is", "revisions are")+" in namespace "+theirs+" alone, and refit-manager reads its own",
			"set openkruise.revisions=true, which copies them: pinned versions are found then, and the history continues")
	}
	if n := c.Ours.missing(c.Theirs); n > 0 && !shared {
		o.from(wording.Count(n, "revision is", "revisions are")+" in namespace "+ours+" alone, and kruise-manager reads its own: the history begins again",
			"set openkruise.revisions=true, which copies them, before refit-manager is stopped")
	}
	return o.found
}

// short returns text of others as a part of one line.
func short(text string) string { return foreign.Shorten(strings.Join(strings.Fields(text), " "), 200) }
