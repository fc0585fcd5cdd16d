package workload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/prepull"
)

const (
	// maxPull limits how long an update waits for its images, unless progressDeadlineSeconds is less. It is less than the time
	// after which a node that reports nothing counts as one that could not pull the image.
	maxPull = 9 * time.Minute
	// pullKept is how long an ImagePullJob is kept after its end. A failed pull is then tried again.
	pullKept = 5 * time.Minute
)

// Pulls is what has been read about pulls of images before an update.
type Pulls struct {
	// Off says why images cannot be pulled before an update; empty if they can.
	Off string
	// Nodes are the nodes on which a daemon pulls images.
	Nodes map[string]bool
	// Jobs are the ImagePullJobs of the namespace.
	Jobs []*v1beta1.ImagePullJob
}

// pull is an image that nodes need before their pods are updated.
type pull struct {
	image   string
	always  bool // a container has imagePullPolicy Always
	nodes   map[string]bool
	ready   map[string]bool // nodes with a pod that is ready; all nodes if no pod is
	secrets map[string]bool
}

// mayServe reports whether a pod is ready, or may become ready by itself before its update.
func (p *pod) mayServe() bool { return !p.budget.Stuck }

// pulled reports whether containers may be stopped: the nodes of the pods have the new images, or cannot pull them before.
func (v *view) pulled(observed Observation, left []*pod) bool {
	status := &v.decision.Status
	if v.policy.Spec.PrePullPolicy == v1alpha1.PrePullNever || status.Update.PulledRevision == status.UpdateRevision || v.goesBack() {
		return true
	}
	note, waits, failed := "", "", ""
	for _, p := range v.pulls(left) {
		if observed.Pulls.Off != "" {
			note = observed.Pulls.Off
			continue
		}
		job := jobNamed(observed.Pulls.Jobs, v.pullName(p.image))
		note = cmp.Or(p.reach(observed.Pulls.Nodes, job), note)
		if len(p.nodes) == 0 {
			continue
		}
		switch state, text := v.look(p, job); state {
		case pullWaits:
			waits = join(waits, text)
		case pullFailed:
			failed = join(failed, text)
		case pullUnknown:
			note = text
		}
	}
	switch {
	case failed != "" && v.policy.Spec.FailurePolicy == v1alpha1.UpdateFailureContinue:
		note = failed
	case failed != "":
		v.notPulled(failed)
		return false
	case waits != "":
		v.waitsForPulls(waits)
		return false
	}
	status.Update.PulledRevision, v.decision.NotPulled = status.UpdateRevision, note
	return true
}

// reach keeps the nodes that can pull the image, and says how many cannot: those without a daemon. Nodes of a job that was created
// are kept, because a daemon that restarts continues the pull.
func (p *pull) reach(daemons map[string]bool, job *v1beta1.ImagePullJob) (note string) {
	pulling := map[string]bool{}
	if job != nil && job.Spec.Selector != nil {
		for _, node := range job.Spec.Selector.Names {
			pulling[node] = true
		}
	}
	has := len(p.nodes)
	maps.DeleteFunc(p.nodes, func(node string, _ bool) bool { return !daemons[node] && !pulling[node] })
	if len(p.nodes) == has {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes have no daemon that pulls images", has-len(p.nodes), has)
}

func jobNamed(jobs []*v1beta1.ImagePullJob, name string) *v1beta1.ImagePullJob {
	at := slices.IndexFunc(jobs, func(job *v1beta1.ImagePullJob) bool { return job.Name == name })
	if at < 0 {
		return nil
	}
	return jobs[at]
}

func join(texts, text string) string {
	if texts == "" {
		return text
	}
	return texts + "; " + text
}

// pulls returns the new images of pods, with the nodes that need them. If there are pods that may serve, only their nodes count: a
// pod that cannot become ready by itself loses nothing when its image cannot be pulled, and its node may be unreachable.
func (v *view) pulls(left []*pod) []*pull {
	serving := slices.ContainsFunc(left, (*pod).mayServe)
	ready := slices.ContainsFunc(v.pods, func(p *pod) bool { return p.budget.Ready })
	pulls := map[string]*pull{}
	for _, p := range left {
		if serving && !p.mayServe() || p.Spec.NodeName == "" {
			continue
		}
		for _, c := range v.fields.update.Containers {
			has, wanted := plan.Find(&p.Spec, c.Name), plan.Find(&v.fields.template.Spec, c.Name)
			if !c.Image || has == nil || wanted == nil || has.Image == wanted.Image || has.ImagePullPolicy == corev1.PullNever {
				continue
			}
			if pulls[wanted.Image] == nil {
				pulls[wanted.Image] = &pull{image: wanted.Image, nodes: map[string]bool{}, ready: map[string]bool{}, secrets: map[string]bool{}}
			}
			to := pulls[wanted.Image]
			if p.budget.Ready || !ready {
				to.ready[p.Spec.NodeName] = true
			}
			to.always, to.nodes[p.Spec.NodeName] = to.always || has.ImagePullPolicy == corev1.PullAlways, true
			for _, secret := range p.Spec.ImagePullSecrets {
				to.secrets[secret.Name] = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(pulls), func(a, b *pull) int { return strings.Compare(a.image, b.image) })
}

type pullState int

const (
	pullDone pullState = iota
	pullWaits
	pullFailed
	pullUnknown // whether kubelet can pull the image on the nodes of the pods that serve
)

// look returns the state of a pull and a message about it. It creates the ImagePullJob if there is none.
func (v *view) look(p *pull, job *v1beta1.ImagePullJob) (pullState, string) {
	if job == nil {
		v.act(Action{Kind: ActionPull, Job: v.job(p, v.pullName(p.image))})
		return pullWaits, fmt.Sprintf("0 of %d nodes have %s", len(p.nodes), p.image)
	}
	return v.stateOf(p, job)
}

// stateOf returns the state of a pull by its job, and a message about it.
func (v *view) stateOf(p *pull, job *v1beta1.ImagePullJob) (pullState, string) {
	status := &job.Status
	if !prepull.Ended(job, maxPull, v.now) {
		v.again(job.CreationTimestamp.Add(maxPull + time.Second))
		nodes := cmp.Or(int(status.Desired), len(p.nodes)) // a new job has no status
		return pullWaits, fmt.Sprintf("%d of %d nodes have %s", status.Succeeded, nodes, p.image)
	}
	c := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionPullFailed)
	text := fmt.Sprintf("image %s: %s", p.image, status.Message)
	switch failed := c != nil && c.Status == metav1.ConditionTrue || c == nil && status.Failed > 0; { // OpenKruise's CRD drops conditions
	case status.CompletionTime == nil, c != nil && c.Reason == v1beta1.ReasonPullDeadlineExceeded, failed && (lacksCredentials(status.Message) || !p.stops(status)):
		return pullUnknown, text
	case failed:
		return pullFailed, text
	}
	return pullDone, ""
}

// stops reports whether a failed pull stops the update: a pod that is ready would be taken out of service without its image.
func (p *pull) stops(status *v1beta1.ImagePullJobStatus) bool {
	if len(status.FailedNodes) == 0 || int(status.Failed) > len(status.FailedNodes) { // the name of the image is invalid, or not all nodes are named
		return len(p.ready) > 0
	}
	return slices.ContainsFunc(status.FailedNodes, func(node string) bool { return p.ready[node] })
}

// lacksCredentials reports whether a registry has refused a pull for its credentials. Kubelet may have others, by its credential
// providers.
func lacksCredentials(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{"unauthorized", "forbidden", "denied", "authoriz", "authentication", "credential"}, func(word string) bool {
		return strings.Contains(message, word)
	})
}

func (v *view) pullName(image string) string {
	sum := fnv.New64a()
	fmt.Fprint(sum, v.policy.UID, "/", v.decision.Status.UpdateRevision, "/", image)
	return fmt.Sprintf("%s-%016x", v.policy.Name, sum.Sum64())
}

func (v *view) pullLimit() time.Duration {
	return min(maxPull, time.Duration(ptr.Deref(v.policy.Spec.ProgressDeadlineSeconds, defaultProgressDeadline))*time.Second)
}

func (v *view) job(p *pull, name string) *v1beta1.ImagePullJob {
	limit := v.pullLimit()
	wanted := prepull.Pull{
		Namespace: v.policy.Namespace, Name: name, Owner: ownedBy(v.policy), Image: p.image,
		Nodes: slices.Sorted(maps.Keys(p.nodes)), Secrets: slices.Sorted(maps.Keys(p.secrets)), Limit: limit, Kept: pullKept,
	}
	job := wanted.Job()
	job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(limit / time.Second))} //nolint:gosec // 9 minutes at most
	job.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	if p.always {
		job.Spec.ImagePullPolicy = v1beta1.PullAlways
	}
	return job
}

// ownedBy returns the reference of what is deleted with the policy.
func ownedBy(policy *v1alpha1.InPlaceUpdatePolicy) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindInPlaceUpdatePolicy, Name: policy.Name, UID: policy.UID, Controller: new(true),
	}
}

// waitsForPulls says that nodes pull images. While a failed pull is tried again, the condition stays.
func (v *view) waitsForPulls(message string) {
	c := meta.FindStatusCondition(v.decision.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != v1alpha1.ReasonImagePullFailed || v.revised {
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonPullingImages, message)
	}
}

// notPulled does what the policy says about images that cannot be pulled. No pod has been changed for them.
func (v *view) notPulled(message string) {
	if v.policy.Spec.FailurePolicy == v1alpha1.UpdateFailureUndo && v.decision.Status.UndoneRevision == "" {
		v.undo("images cannot be pulled (" + message + ")")
		return
	}
	v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonImagePullFailed, fmt.Sprintf("%s; no pod is updated, and the pull is tried again after %d minutes", message, pullKept/time.Minute))
}
