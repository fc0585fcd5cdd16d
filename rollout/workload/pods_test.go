package workload_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/workload"
)

func (w *world) begin(pod *corev1.Pod) {
	w.t.Helper()
	options := plan.Options{Revision: w.last.Status.UpdateRevision, ImagesPresent: true}
	if drain := w.policy.Spec.DrainSeconds; drain != nil {
		options.DrainSeconds = *drain
	}
	update, err := w.last.Fields.Update(pod, options)
	if err != nil {
		w.t.Fatal(err)
	}
	step, err := inplace.Start(pod, &update, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.patch(pod, step)
}

func (w *world) proceed(pod *corev1.Pod) {
	w.t.Helper()
	recorded, err := record.Read(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	d := inplace.Next(pod, recorded, nil, w.now)
	switch {
	case d.Kind != inplace.KindStep:
	case d.Step.Kind == inplace.StepRestart:
		w.restart(workload.RestartRequest(w.policy, pod, d.Step.Restart))
	default:
		w.patch(pod, d.Step)
	}
}

// restart does what the daemon does for a request: kubelet starts another instance. A second request with one name is refused by
// the API server.
func (w *world) restart(request *v1beta1.ContainerRecreateRequest) {
	if slices.ContainsFunc(w.requests, func(r *v1beta1.ContainerRecreateRequest) bool { return r.Name == request.Name }) {
		return
	}
	w.requests = append(w.requests, request)
	pod := w.pods[request.Spec.PodName]
	if w.bad["restarts"] {
		request.Status.CompletionTime, request.Status.Phase = &metav1.Time{Time: w.now}, v1beta1.ContainerRecreateRequestCompleted
		request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "DeadlineExceeded", Message: "no daemon"}}
		return
	}
	w.start(pod, kubelet.StatusOf(pod, request.Spec.Containers[0].Name))
	request.Status.CompletionTime, request.Status.Phase = &metav1.Time{Time: w.now}, v1beta1.ContainerRecreateRequestCompleted
	request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: metav1.ConditionTrue}}
	w.condition(pod, false)
	w.worst = max(w.worst, w.unavailable())
}

// start starts another instance of a container, with the environment of this moment.
func (w *world) start(pod *corev1.Pod, status *corev1.ContainerStatus) {
	w.version++
	w.restarts[pod.Name]++
	status.ContainerID, status.Ready = fmt.Sprintf("containerd://%d", w.version), false
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}
	w.tracks[status.ContainerID] = pod.Labels["track"]
	w.registry.use(pod.Spec.NodeName, status.Image)
}

func (w *world) patch(pod *corev1.Pod, step *inplace.Step) {
	w.t.Helper()
	if w.refused && step.Subresource == "resize" {
		return
	}
	old, err := json.Marshal(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, step.Patch(), corev1.Pod{})
	if err != nil {
		w.t.Fatal(err)
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(merged, after); err != nil {
		w.t.Fatal(err)
	}
	w.version++
	after.ResourceVersion = strconv.Itoa(w.version)
	if !apiequality.Semantic.DeepEqual(pod.Spec, after.Spec) {
		after.Generation++
	}
	w.resized(after)
	w.pods[pod.Name] = after
}

// registry has images, which nodes pull by ImagePullJobs. Unless it is on, nothing pulls images before they are needed.
type registry struct {
	on       bool
	fails    map[string]string // what pulls of an image end with
	full     map[string]bool   // nodes without space
	stuck    bool              // no pull ends
	jobs     []*v1beta1.ImagePullJob
	has      map[string]bool // node and image
	unpulled []string        // started containers whose image was not pulled before
	daemons  map[string]bool
}

func (r *registry) pulls() workload.Pulls {
	if !r.on {
		return workload.Pulls{Off: "off"}
	}
	return workload.Pulls{Nodes: r.daemons, Jobs: slices.Clone(r.jobs)}
}

func (r *registry) add(job *v1beta1.ImagePullJob, now time.Time) {
	if slices.ContainsFunc(r.jobs, func(is *v1beta1.ImagePullJob) bool { return is.Name == job.Name }) {
		return
	}
	job.CreationTimestamp = metav1.NewTime(now)
	r.jobs = append(r.jobs, job)
}

// work ends jobs a round after they were created, and deletes them after their time to live.
func (r *registry) work(now time.Time) {
	r.jobs = slices.DeleteFunc(r.jobs, func(job *v1beta1.ImagePullJob) bool {
		done := job.Status.CompletionTime
		return done != nil && !now.Before(done.Add(time.Duration(*job.Spec.CompletionPolicy.TTLSecondsAfterFinished)*time.Second))
	})
	for _, job := range r.jobs {
		nodes := job.Spec.Selector.Names
		if job.Status.CompletionTime != nil || r.stuck || !now.After(job.CreationTimestamp.Add(time.Second)) {
			job.Status.Desired = int32(len(nodes))
			continue
		}
		job.Status.CompletionTime = &metav1.Time{Time: now}
		if why := r.fails[job.Spec.Image]; why != "" {
			job.Status.Failed, job.Status.FailedNodes, job.Status.Message = int32(len(nodes)), nodes, "job has completed; "+why
			job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionPullFailed, Status: metav1.ConditionTrue, Reason: "PullFailed"}}
			continue
		}
		for _, node := range nodes {
			if r.full[node] {
				job.Status.Failed, job.Status.FailedNodes, job.Status.Message = 1, []string{node}, "job has completed; 1 of 3 nodes failed: no space"
				job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionPullFailed, Status: metav1.ConditionTrue, Reason: "PullFailed"}}
				continue
			}
			job.Status.Succeeded++
			r.has[node+" "+job.Spec.Image] = true
		}
	}
}

// use notes the start of a container.
func (r *registry) use(node, image string) {
	if r.on && !r.has[node+" "+image] {
		r.unpulled = append(r.unpulled, node+" "+image)
	}
}
