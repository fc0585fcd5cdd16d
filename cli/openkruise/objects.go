package openkruise

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/probe/podprobe"
)

// OfRequest returns the differences for a ContainerRecreateRequest that is in progress.
func OfRequest(request *v1beta1.ContainerRecreateRequest) []Difference {
	o := of{kind: "ContainerRecreateRequest", name: named(request.Namespace, request.Name)}
	if !crr.Completed(request) {
		o.to("it is under way: refit-daemon goes on with it, and counts from then on", "wait until its phase is Completed")
		o.from("it is under way: kruise-daemon goes on with it, and may stop containers again that are Pending", "wait until its phase is Completed")
	}
	return o.found
}

// OfJob returns the differences for an ImagePullJob. readable reports whether refit-manager may read Secrets of its
// namespace.
func OfJob(job *v1beta1.ImagePullJob, readable bool) []Difference {
	o := of{kind: "ImagePullJob", name: named(job.Namespace, job.Name)}
	if job.Status.CompletionTime == nil {
		o.ofPulls(&job.Spec.ImagePullJobTemplate, readable, job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever)
	}
	return o.found
}

// OfList returns the differences for an ImageListPullJob, like OfJob.
func OfList(list *v1beta1.ImageListPullJob, readable bool) []Difference {
	o := of{kind: "ImageListPullJob", name: named(list.Namespace, list.Name)}
	if list.Status.CompletionTime == nil {
		o.ofPulls(&list.Spec.ImagePullJobTemplate, readable, list.Spec.CompletionPolicy.Type == v1beta1.CompletionNever)
	}
	return o.found
}

// ofPulls adds differences for pulls that have not ended.
func (o *of) ofPulls(template *v1beta1.ImagePullJobTemplate, readable, forever bool) {
	if !forever {
		o.both("its pulls are under way: the other manager goes on with them, and nodes may pull images again", "wait until it has ended")
	}
	if len(template.PullSecrets) > 0 && !readable {
		o.to("refit-manager may not read the pull secrets of its namespace, and waits for them",
			"bind the ClusterRole refit-pull-secret-reader to refit-manager in the namespace (docs/images.md)")
	}
	if p := template.Parallelism; p != nil && p.Type == intstr.String {
		o.to("parallelism is a text, which Refit refuses when the object is written", "write it as a number")
	}
	if p := template.PullPolicy; p != nil && p.TimeoutSeconds != nil && *p.TimeoutSeconds < 1 {
		o.to("pullPolicy.timeoutSeconds is less than 1, which Refit refuses when the object is written", "write the seconds that an attempt may take")
	}
}

// NeedsSecrets reports whether the pulls of an object that has not ended need Secrets of its namespace.
func NeedsSecrets(template *v1beta1.ImagePullJobTemplate, ended bool) bool {
	return !ended && len(template.PullSecrets) > 0
}

// OfMarker returns the differences for a PodProbeMarker. guarded reports whether NetworkPolicies restrict ingress in its
// namespace.
func OfMarker(marker *v1alpha1.PodProbeMarker, guarded bool) []Difference {
	o := of{kind: "PodProbeMarker", name: named(marker.Namespace, marker.Name)}
	for _, fault := range podprobe.NewMarker(marker).Errors {
		o.to("Refit does not accept it: "+short(fault.Error()), "change it; the probes with such a fault do not run")
	}
	connects := false
	for i := range marker.Spec.Probes {
		probe := &marker.Spec.Probes[i].Probe
		connects = connects || probe.HTTPGet != nil || probe.TCPSocket != nil || probe.GRPC != nil
		if probe.GRPC != nil {
			o.from("its probe "+short(marker.Spec.Probes[i].Name)+" is a grpc probe: OpenKruise refuses it when the marker is written, and does not run it",
				"use exec or tcpSocket")
		}
		if get := probe.HTTPGet; get != nil && (get.Path == "" || get.Scheme == "") {
			o.from("the httpGet of its probe "+short(marker.Spec.Probes[i].Name)+" has no path, or no scheme: OpenKruise refuses it when the marker is written", "write both")
		}
	}
	if connects && guarded {
		o.to("refit-daemon connects from the pod network, and NetworkPolicies of the namespace restrict ingress; kruise-daemon connects from the node",
			"allow the daemon (docs/how-to/networkpolicies.md), or set daemon.hostNetwork=true")
	}
	return o.found
}

// OfNamespace returns the differences in a namespace, by its labels.
func (c *Cluster) OfNamespace(name string, labels map[string]string) []Difference {
	o := of{kind: "Namespace", name: name}
	if labels[v1beta1.LabelReadinessGate] == "enabled" && !c.Gates[gateReadiness] {
		o.from("its label "+v1beta1.LabelReadinessGate+" has no effect: new pods do not get the readiness gate KruisePodReady, and are not taken out of their Services before a restart",
			"switch the feature gate "+gateReadiness+" of kruise-manager on, for all namespaces, or write the gate into the templates")
	}
	return o.found
}

// OfNode returns the differences on a node.
func OfNode(node *corev1.Node) []Difference {
	o := of{kind: "Node", name: node.Name}
	info := &node.Status.NodeInfo
	if strings.HasPrefix(info.KubeletVersion, "v1.30.") {
		o.to("its kubelet "+info.KubeletVersion+" has a container hash that SidecarSets of Refit do not compare: a sidecar counts as updated a minute after it is ready", "upgrade the kubelet")
	}
	if runtime, _, found := strings.Cut(info.ContainerRuntimeVersion, "://"); found && runtime != "containerd" && runtime != "cri-o" {
		o.to("refit-daemon does not read the environment of containers from "+short(runtime)+
			": changed labels and annotations restart none, and workloads of OpenKruise wait for that", "keep kruise-daemon on it")
	}
	return o.found
}

// OfDisruptionBudget returns the differences by a PodDisruptionBudget while SidecarSets are rolled out.
func OfDisruptionBudget(budget *policyv1.PodDisruptionBudget) []Difference {
	o := of{kind: "PodDisruptionBudget", name: named(budget.Namespace, budget.Name)}
	if budget.Status.ExpectedPods > 0 && budget.Status.DisruptionsAllowed == 0 {
		o.to("it allows no disruption now: Refit does not stop sidecars of its pods, OpenKruise does not ask it", "let it allow one, or wait until its pods are ready")
	}
	return o.found
}

// OfSecretCopies returns the differences by copies of pull secrets that refit-manager has created.
func OfSecretCopies(namespace string, copies int) []Difference {
	o := of{kind: "Secrets of namespace", name: namespace}
	if copies > 0 {
		o.from("copies of pull secrets that refit-manager has made: kruise-manager does not remove them",
			"delete those with the label "+v1beta1.LabelPullSecretCopyBy+" afterwards")
	}
	return o.found
}
