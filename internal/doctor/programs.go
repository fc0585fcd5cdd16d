package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
)

// manager checks that refit-manager runs.
func (e *examiner) manager(context.Context) []Finding {
	switch {
	case e.lookErr != nil:
		return e.unseen()
	case e.deployment == nil && e.daemonSet == nil:
		return one(Failed, "there is neither a refit-manager nor a refit-daemon in namespace %s; if Refit is in another, name it with --system-namespace", e.System)
	case e.deployment == nil:
		return one(Skipped, "none in namespace %s: requests are admitted by kruise-manager, or not at all", e.System)
	}
	wanted := int32(1)
	if e.deployment.Spec.Replicas != nil {
		wanted = *e.deployment.Spec.Replicas
	}
	ready := e.deployment.Status.ReadyReplicas
	switch {
	case ready == 0:
		return one(Failed, "none of %d replicas is ready: no request can be created; see kubectl --namespace %s describe pods --selector app.kubernetes.io/name=refit-manager", wanted, e.System)
	case ready < wanted:
		return one(Warning, "%d of %d replicas are ready", ready, wanted)
	}
	return one(OK, "%d of %d replicas are ready", ready, wanted)
}

// leads is the age of its Lease up to which a replica leads. It is renewed every 1.5 s, and another replica leads within 20 s. The clock
// of a user may be wrong by minutes.
const leads = 5 * time.Minute

// leader checks that a replica of refit-manager leads: the others serve webhooks only.
func (e *examiner) leader(ctx context.Context) []Finding {
	switch {
	case e.deployment == nil && e.lookErr != nil:
		return e.unseen()
	case e.deployment == nil:
		return one(Skipped, "there is no refit-manager")
	case e.off("leader-elect"):
		return one(Skipped, "refit-manager has --leader-elect=false")
	}
	var lease coordinationv1.Lease
	switch err := e.API.Get(ctx, client.ObjectKey{Namespace: e.System, Name: "refit-manager"}, &lease); {
	case apierrors.IsNotFound(err):
		return one(Failed, "no replica leads, so that webhooks alone work: there is no Lease refit-manager in namespace %s", e.System)
	case err != nil:
		return unread("Leases of namespace "+e.System, err)
	}
	renewed := lease.CreationTimestamp.Time // no replica has led yet
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	if age := e.Now.Sub(renewed).Round(time.Second); age > leads {
		return one(Failed, "no replica leads, so that webhooks alone work: the Lease refit-manager was renewed %s ago, if the clock here is right; see the logs of refit-manager", age)
	}
	return one(OK, "a replica leads")
}

// unseen returns the finding of a check that needs the Deployment and the DaemonSet if they could not be read.
func (e *examiner) unseen() []Finding {
	return unread("Deployments and DaemonSets of namespace "+e.System, e.lookErr)
}

// shownNodes bounds the names in a message.
const shownNodes = 5

// daemons checks that every node that should have a refit-daemon has a ready one.
func (e *examiner) daemons(ctx context.Context) []Finding {
	if e.daemonSet == nil {
		if e.lookErr != nil {
			return e.unseen()
		}
		return one(Failed, "there is no refit-daemon in namespace %s: requests are not carried out, unless by kruise-daemon or refit-sidecar", e.System)
	}
	var pods corev1.PodList
	if err := e.API.List(ctx, &pods, client.InNamespace(e.System), client.MatchingLabels{"app.kubernetes.io/name": "refit-daemon"}); err != nil {
		return unread("pods of refit-daemon", err)
	}
	var waiting []string
	ready := 0
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case kubelet.Ready(pod):
			ready++
		case pod.Spec.NodeName != "":
			waiting = append(waiting, pod.Spec.NodeName)
		}
	}
	wanted := int(e.daemonSet.Status.DesiredNumberScheduled)
	missing := wanted - ready - len(waiting) // not created, for example because of the Pod Security level, or not scheduled
	if len(waiting) > 0 || missing > 0 {
		return one(Failed, "ready on %d of %d nodes%s", ready, wanted, e.notReady(waiting, missing))
	}
	return one(OK, "ready on %d of %d nodes", ready, wanted)
}

// notReady names the nodes where a refit-daemon is not ready, and says how to find out why pods of it are missing.
func (e *examiner) notReady(waiting []string, missing int) string {
	said := ""
	if len(waiting) > 0 {
		slices.Sort(waiting)
		said = "; not on: " + strings.Join(waiting[:min(len(waiting), shownNodes)], ", ")
		if len(waiting) > shownNodes {
			said += ", ..."
		}
	}
	if missing > 0 {
		said += fmt.Sprintf("; %s missing: kubectl describe daemonset %s --namespace %s", wording.Count(missing, "pod is", "pods are"), e.daemonSet.Name, e.System)
	}
	return said
}

// versions compares the tags of the images with each other and with the version of this program.
func (e *examiner) versions(context.Context) []Finding {
	tags := map[string]bool{}
	var parts []string
	if e.deployment != nil {
		parts = append(parts, "refit-manager "+note(tags, e.deployment.Spec.Template.Spec.Containers))
	}
	if e.daemonSet != nil {
		parts = append(parts, "refit-daemon "+note(tags, e.daemonSet.Spec.Template.Spec.Containers))
	}
	switch {
	case len(parts) == 0 && e.lookErr != nil:
		return e.unseen()
	case len(parts) == 0:
		return nil
	}
	if e.Version != "" {
		parts = append(parts, "this program "+e.Version)
		tags[e.Version] = true
	}
	if len(tags) > 1 {
		return one(Warning, "they differ: %s", strings.Join(parts, ", "))
	}
	return one(OK, "%s", strings.Join(parts, ", "))
}

// note returns the tag of the first container's image and adds it to the set.
func note(tags map[string]bool, containers []corev1.Container) string {
	if len(containers) == 0 {
		return "without an image"
	}
	name, _, _ := strings.Cut(containers[0].Image, "@")
	tag := "latest"
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		tag = name[i+1:]
	}
	tags[tag] = true
	return tag
}

// openKruise looks for programs that would do the same work as Refit's.
func (e *examiner) openKruise(ctx context.Context) []Finding {
	var sets appsv1.DaemonSetList
	if err := e.API.List(ctx, &sets, client.MatchingLabels{"control-plane": "daemon"}); err != nil {
		return unread("DaemonSets of all namespaces", err)
	}
	for _, set := range sets.Items {
		if set.Name == "kruise-daemon" && set.Status.CurrentNumberScheduled > 0 && e.daemonSet != nil {
			return one(Failed, "kruise-daemon runs on %d nodes: it and refit-daemon would stop the same containers; see docs/migrate-from-openkruise.md", set.Status.CurrentNumberScheduled)
		}
	}
	runs, err := e.kruiseManager(ctx)
	switch {
	case err != nil:
		return unread("Deployments of all namespaces", err)
	case !runs:
		return one(OK, "not running")
	case e.deployment == nil || e.off("container-recreate-requests"):
		return one(OK, "kruise-manager is there, and ContainerRecreateRequests are its own")
	}
	return one(Warning, "kruise-manager and refit-manager are both there, and both may change ContainerRecreateRequests; see docs/install.md")
}

// kruiseManager reports whether kruise-manager runs. If it is scaled down it can be started again.
func (e *examiner) kruiseManager(ctx context.Context) (bool, error) {
	var managers appsv1.DeploymentList
	if err := e.API.List(ctx, &managers, client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		return false, fmt.Errorf("list Deployments: %w", err)
	}
	return slices.ContainsFunc(managers.Items, func(d appsv1.Deployment) bool {
		return d.Name == "kruise-controller-manager" && (d.Spec.Replicas == nil || *d.Spec.Replicas > 0)
	}), nil
}
