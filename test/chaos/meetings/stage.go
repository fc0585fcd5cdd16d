package meetings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

const (
	workloadName = "web"
	port         = 8080
	// blipTime is how long readiness fails, as while something that an application depends on is away.
	blipTime = 4 * time.Second
)

// stage is where one meeting takes place.
type stage struct {
	cluster   *cluster.Cluster
	choice    *rand.Rand
	tool      func() (string, error) // path of kubectl-refit
	number    int
	namespace string
	kind      string // of the workload; empty: a Deployment
	rollouts  int
	left      []client.Object // to be deleted first at the end
}

// shape of the workload. Its applications are ready delay after their start, at the earliest.
type shape struct {
	replicas     int32
	delay        int32 // seconds from the start of the application until its readiness is first asked for
	hook         int   // seconds of the preStop hook
	grace        int64
	ignoresTerm  bool
	minReady     int32
	labels       map[string]string // of the pods, beside the workload's own
	container    *corev1.Container // beside the application
	mostDisabled *int              // maxUnavailable of its PodDisruptionBudget
}

func workloadLabels() map[string]string { return map[string]string{cluster.Label: workloadName} }

// workload makes the workload, its Service and its PodDisruptionBudget.
func (s *stage) workload(ctx context.Context, form shape) error {
	if err := s.cluster.Namespace(ctx, s.namespace); err != nil {
		return err
	}
	object := metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}
	service := &corev1.Service{ObjectMeta: object}
	service.Spec.Selector = workloadLabels()
	service.Spec.Ports = []corev1.ServicePort{{Port: port}}
	objects := []client.Object{service, ofKind(s.deployment(form), s.kind)}
	if form.mostDisabled != nil {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: object}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: workloadLabels()}
		b.Spec.MaxUnavailable = new(intstr.FromInt(*form.mostDisabled))
		objects = append(objects, b)
	}
	for _, object := range objects {
		if err := s.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) create(ctx context.Context, object client.Object) error {
	return cluster.Until(ctx, fmt.Sprintf("create %T %s", object, object.GetName()), time.Minute, func(ctx context.Context) bool {
		return client.IgnoreAlreadyExists(s.cluster.Create(ctx, object)) == nil
	})
}

func (s *stage) deployment(form shape) *appsv1.Deployment {
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}}
	object.Spec.Replicas = &form.replicas
	object.Spec.MinReadySeconds = form.minReady
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: workloadLabels()}
	object.Spec.Template.Labels = workloadLabels()
	for key, value := range form.labels {
		object.Spec.Template.Labels[key] = value
	}
	object.Spec.Template.Spec = s.cluster.Pod(s.namespace, "", "", func(spec *corev1.PodSpec) {
		spec.TerminationGracePeriodSeconds = &form.grace
		app := &spec.Containers[0]
		app.Args = []string{fmt.Sprintf("--http=:%d", port), "--state=/signals/" + stateFile("$(POD_UID)")}
		if form.ignoresTerm {
			app.Args = append(app.Args, "--ignore-term")
		}
		if form.hook > 0 {
			app.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{"/testapp", "sleep", fmt.Sprintf("%ds", form.hook)}},
			}}
		}
		app.ReadinessProbe = &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromInt32(port)}},
			InitialDelaySeconds: form.delay, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 5,
		}
		if form.container != nil {
			spec.Containers = append(spec.Containers, *form.container)
		}
	}).Spec
	return object
}

func stateFile(pod string) string { return pod + ".ready" }

// pods are the pods of the workload, by their names.
func (s *stage) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.cluster.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels(workloadLabels()))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// until all pods of the workload are as they are to be.
func (s *stage) until(ctx context.Context, what string, is func(*corev1.Pod) bool) error {
	return cluster.Until(ctx, what, cluster.RolloutTime, func(ctx context.Context) bool {
		workload := s.named()
		if s.cluster.Get(ctx, client.ObjectKeyFromObject(workload), workload) != nil {
			return false
		}
		pods, err := s.pods(ctx)
		return err == nil && len(pods) == desired(workload) && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !is(&p) })
	})
}

func (s *stage) ready(ctx context.Context) error {
	return s.until(ctx, "pods are ready", cluster.Ready)
}

// running waits until kubelet has reported the application of every pod, ready or not.
func (s *stage) running(ctx context.Context) error {
	return s.until(ctx, "pods run", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
	})
}

// blip has the readiness of all pods fail for a moment.
func (s *stage) blip(ctx context.Context) error {
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" }) // what has not started cannot fail
	for _, text := range []string{"down", "up"} {
		for i := range pods {
			name := s.cluster.Run(pods[i].Spec.NodeName, cluster.LogFolder, stateFile(string(pods[i].UID)))
			// Replaced as a whole: testapp, which is another user, never reads half of it.
			if err := errors.Join(os.WriteFile(name+".new", []byte(text), 0o644), os.Rename(name+".new", name)); err != nil {
				return fmt.Errorf("readiness of %s: %w", pods[i].Name, err)
			}
		}
		if text == "down" {
			_ = cluster.Pause(ctx, blipTime) // it ends in any case
		}
	}
	return ctx.Err()
}

// rollout creates a RestartRollout with maxUnavailable 1.
func (s *stage) rollout(ctx context.Context, change func(*refitv1alpha1.RestartRolloutSpec)) (*refitv1alpha1.RestartRollout, error) {
	s.rollouts++
	r := &refitv1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("rollout-%d", s.rollouts)}}
	r.Spec = rolloutSpec()
	if change != nil {
		change(&r.Spec)
	}
	return r, s.create(ctx, r)
}

func rolloutSpec() refitv1alpha1.RestartRolloutSpec {
	return refitv1alpha1.RestartRolloutSpec{
		TargetRef:  &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: workloadName},
		Containers: refitv1alpha1.RolloutContainers("app"), RolloutPace: refitv1alpha1.RolloutPace{MaxUnavailable: new(intstr.FromInt32(1))},
	}
}

func (s *stage) ended(ctx context.Context, r *refitv1alpha1.RestartRollout) error {
	return cluster.Until(ctx, "end of "+r.Namespace+"/"+r.Name, rolloutTime, func(ctx context.Context) bool {
		return s.cluster.Get(ctx, client.ObjectKeyFromObject(r), r) == nil && meta.IsStatusConditionTrue(r.Status.Conditions, refitv1alpha1.ConditionFinished)
	})
}

// begun waits until the first pod of a rollout is out.
func (s *stage) begun(ctx context.Context) error {
	return cluster.Until(ctx, "first restart in "+s.namespace, time.Minute, func(ctx context.Context) bool {
		var requests v1beta1.ContainerRecreateRequestList
		pods, err := s.pods(ctx)
		out := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !cluster.Ready(&p) })
		return err == nil && out && s.cluster.List(ctx, &requests, client.InNamespace(s.namespace)) == nil && len(requests.Items) > 0
	})
}

// second waits until the rollout has restarted a pod and has begun with another one.
func (s *stage) second(ctx context.Context, r *refitv1alpha1.RestartRollout) error {
	return cluster.Until(ctx, "second restart of "+r.Namespace+"/"+r.Name, rolloutTime, func(ctx context.Context) bool {
		return s.cluster.Get(ctx, client.ObjectKeyFromObject(r), r) == nil && r.Status.RestartedPods > 0 && r.Status.RestartingPods > 0
	})
}

// end leaves, and tries again while the API server does not do what it is asked.
func (s *stage) end(ctx context.Context) error {
	var failed error
	err := cluster.Until(ctx, "end of meeting "+s.namespace, endTime, func(ctx context.Context) bool {
		failed = s.leave(ctx)
		return failed == nil
	})
	if err != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// leave ends what is under way and takes the workload away. The rollouts that have ended stay, for what their statuses say.
func (s *stage) leave(ctx context.Context) error {
	errs := []error{s.remove(ctx, s.left...)} // a schedule before its rollouts, or it creates another one
	var rollouts refitv1alpha1.RestartRolloutList
	errs = append(errs, s.cluster.List(ctx, &rollouts, client.InNamespace(s.namespace)))
	for i := range rollouts.Items {
		if !meta.IsStatusConditionTrue(rollouts.Items[i].Status.Conditions, refitv1alpha1.ConditionFinished) {
			errs = append(errs, s.remove(ctx, &rollouts.Items[i]))
		}
	}
	object := metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}
	errs = append(errs, s.remove(ctx, s.named(), &policyv1.PodDisruptionBudget{ObjectMeta: object}))
	return errors.Join(errs...)
}

func (s *stage) remove(ctx context.Context, objects ...client.Object) error {
	var errs []error
	for _, object := range objects {
		err := s.cluster.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
