package openkruise

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// gate is a feature gate of kruise-manager with differences.
type gate struct {
	name  string
	alpha bool // part of AllAlpha, not of AllBeta
	// on is the default.
	on bool
	// when is the state of the gate for which Differs and Do hold, if there are objects of the kind; with an empty kind
	// they always hold.
	when        bool
	kind        string
	differs, do string
}

// idle returns a gate without which nothing handles the objects of a kind; feature is the chart's value for them.
func idle(name string, alpha, on bool, kind, feature string) gate {
	return gate{name: name, alpha: alpha, on: on, kind: kind, differs: "nothing carries them out now; Refit does",
		do: "delete those that are not to be carried out, or set manager.features." + feature + "=false"}
}

const (
	// gatePatch is the gate without which patchPodMetadata of SidecarSets needs an allowlist.
	gatePatch = "SidecarSetPatchPodMetadataDefaultsAllowed"
	// gateReadiness is the gate that adds the readiness gate KruisePodReady to all pods.
	gateReadiness = "KruisePodReadinessGate"
	// gateTerminator is the gate that ends sidecars of Jobs.
	gateTerminator = "SidecarTerminator"
)

// gates returns the gates of features that Refit has too; the others concern OpenKruise's own workloads.
func gates() []gate {
	return []gate{
		{name: gateReadiness, alpha: true, when: true,
			differs: "all new pods get the readiness gate KruisePodReady; with Refit only in namespaces with the label " + v1beta1.LabelReadinessGate + ": enabled",
			do:      "set manager.features.readinessGates=all, or label the namespaces"},
		{name: "EnableSortSidecarContainerByName", alpha: true, when: true, kind: "SidecarSet",
			differs: "sidecars of all SidecarSets are sorted by their names; Refit injects them by the names of the SidecarSets, in the order of their specs",
			do:      "rename SidecarSets if the order of containers matters"},
		{name: "EnablePodProbeMarkerOnServerless", alpha: true, when: true, kind: "PodProbeMarker",
			differs: "all pods that they select get the annotation kruise.io/podprobe when they are created; with Refit those that select or tolerate virtual nodes",
			do:      "set manager.features.serverlessProbes=all"},
		{name: "EnhancedLivenessProbe", alpha: true, when: true, differs: "liveness probes of pods that ask for it are carried out by OpenKruise; Refit has no such feature",
			do: "remove the annotation apps.kruise.io/using-enhanced-liveness from templates, and create their pods again"},
		{name: "ResourcesDeletionProtection", when: true, differs: "objects with the label policy.kruise.io/delete-protection cannot be deleted; Refit has no such feature",
			do: "protect them with a ValidatingAdmissionPolicy"},
		idle("ImagePullJobGate", true, false, "ImagePullJob", "images"),
		idle("ImagePullJobGate", true, false, "ImageListPullJob", "images"),
		idle("PodProbeMarkerGate", false, true, "PodProbeMarker", "podProbes"),
		idle("KruiseDaemon", false, true, "ContainerRecreateRequest", "containerRecreateRequests"),
		idle("PodWebhook", false, true, "SidecarSet", "sidecarSets"),
	}
}

// Gates returns the known feature gates of a kruise-manager; nil without a kruise-manager.
func Gates(manager *appsv1.Deployment) map[string]bool {
	if manager == nil {
		return nil
	}
	enabled, set := map[string]bool{}, map[string]bool{}
	for name, value := range flagsOf(manager.Spec.Template.Spec.Containers) {
		if name != "feature-gates" {
			continue
		}
		for pair := range strings.SplitSeq(value, ",") {
			if name, is, found := strings.Cut(strings.TrimSpace(pair), "="); found {
				set[name] = strings.EqualFold(is, "true")
			}
		}
	}
	for _, g := range append(gates(), gate{name: gatePatch, alpha: true}, gate{name: gateTerminator, alpha: true}) {
		enabled[g.name] = g.on
		all := "AllBeta"
		if g.alpha {
			all = "AllAlpha"
		}
		if is, given := set[all]; given {
			enabled[g.name] = is
		}
	}
	maps.Copy(enabled, set)
	return enabled
}

// flagsOf reads the flags of a program, in either form.
func flagsOf(containers []corev1.Container) map[string]string {
	flags := map[string]string{}
	for i := range containers {
		args := append(append([]string(nil), containers[i].Command...), containers[i].Args...)
		for j, arg := range args {
			name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if !strings.HasPrefix(arg, "-") {
				continue
			}
			if !found && j+1 < len(args) && !strings.HasPrefix(args[j+1], "-") {
				value = args[j+1]
			}
			flags[name] = value
		}
	}
	return flags
}

// OfGates returns the differences by the feature gates of kruise-manager. used are the objects of each kind.
func OfGates(enabled map[string]bool, used map[string]Objects) []Difference {
	var found []Difference
	for _, g := range gates() {
		is, known := enabled[g.name]
		if !known || is != g.when || g.kind != "" && used[g.kind].Count == 0 {
			continue
		}
		state := "off"
		if is {
			state = "on"
		}
		o := of{kind: "feature gate", name: g.name}
		about := ""
		if g.kind != "" {
			about = g.kind + ", " + used[g.kind].String() + "; "
		}
		o.to("it is "+state+": "+about+g.differs, g.do)
		found = append(found, o.found...)
	}
	return found
}

// OfDaemon returns the differences by the flags of kruise-daemon. pulls reports whether there are ImagePullJobs or
// ImageListPullJobs.
func OfDaemon(daemon *appsv1.DaemonSet, pulls bool) []Difference {
	o := of{kind: "DaemonSet", name: named(daemon.Namespace, daemon.Name)}
	flags := flagsOf(daemon.Spec.Template.Spec.Containers)
	switch most, given := flags["max-workers-for-pull-image"]; {
	case !pulls || most == "3":
	case given && most != "-1":
		o.to("it pulls "+most+" images at a time; refit-daemon pulls 3, and up to 6 of several namespaces", "set daemon.extraArgs: [--max-workers-for-pull-image="+most+"]")
	default:
		o.to("it pulls any number of images at a time; refit-daemon pulls 3, and up to 6 of several namespaces", "set daemon.extraArgs: [--max-workers-for-pull-image=NUMBER] for more")
	}
	if file := flags["plugin-config-file"]; file != "" {
		o.to("it uses the credential provider plugins of "+file, "mount the file and the plugins into refit-daemon, and name them in daemon.extraArgs (docs/images.md)")
	}
	return o.found
}

// OfWebhooks returns the differences by a webhook configuration of kruise-manager with this number of webhooks.
func OfWebhooks(kind, name string, webhooks int) []Difference {
	o := of{kind: kind, name: name}
	if webhooks > 0 {
		o.to("its webhooks call kruise-manager: when that has been stopped, what they match, such as new pods, is refused",
			"save it, stop kruise-manager, and delete it at once")
	}
	return o.found
}
