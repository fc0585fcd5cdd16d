package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

// Config configures a restart.
type Config struct {
	API    client.WithWatch
	Output *console.Output
	// Made prints the created request or rollout.
	Made      table.Made
	Namespace string
	// Containers are the containers to restart, in this order; empty means the only container of the pods.
	Containers []string
	Reason     string
	// DrainSeconds is how long a pod is not ready before its first container is stopped; nil means no drain.
	DrainSeconds *int32
	// GracePeriodSeconds is the time between SIGTERM and SIGKILL; nil means the pod's own.
	GracePeriodSeconds *int64
	// MinReadySeconds is how long a pod must be ready after its restart to count as available; nil means minReadySeconds of
	// the workload. If only one pod is restarted, it is how long the containers must run.
	MinReadySeconds *int32
	Rollout         RolloutOptions
	// Wait waits for the end of the restart.
	Wait bool
	// Timeout limits the wait; zero means no limit. The restart continues afterwards.
	Timeout time.Duration
	DryRun  bool
}

// RolloutOptions are options for restarts of more than one pod.
type RolloutOptions struct {
	MaxUnavailable             *intstr.IntOrString
	Partition                  *intstr.IntOrString
	ContinueOnFailure          bool
	IgnorePodDisruptionBudgets bool
}

// Target is what to restart: a pod, a workload, or the pods that match a selector.
type Target struct {
	Pod      string
	Workload *v1alpha1.WorkloadReference
	Selector *metav1.LabelSelector
}

// ParseTarget parses pod/NAME, deployment/NAME and the like, or a label selector in the form of kubectl's --selector.
func ParseTarget(text, selector string) (Target, error) {
	if (text == "") == (selector == "") {
		return Target{}, fmt.Errorf("%w: name either one resource, as deployment/web, or pods by --selector", console.ErrUsage)
	}
	if selector != "" {
		parsed, err := parseSelector(selector)
		if err != nil {
			return Target{}, fmt.Errorf("%w: --selector: %w", console.ErrUsage, err)
		}
		return Target{Selector: parsed}, nil
	}
	kind, name, ok := console.KindName(text)
	switch {
	case text != "" && !strings.Contains(text, "/"):
		return Target{}, fmt.Errorf("%w: %q: want KIND/NAME; did you mean deployment/%s or pod/%s?", console.ErrUsage, text, text, text)
	case !ok:
		return Target{}, fmt.Errorf("%w: %q: want KIND/NAME, as pod/web-0 or deployment/web", console.ErrUsage, text)
	case console.IsPod(kind):
		return Target{Pod: name}, nil
	}
	workload, ok := kinds[kind]
	if !ok {
		return Target{}, fmt.Errorf("%w: %q: want a pod, deployment, replicaset, statefulset, daemonset or cloneset", console.ErrUsage, kind)
	}
	workload.Name = name
	return Target{Workload: &workload}, nil
}

// parseSelector parses a label selector in the form of kubectl's --selector. A LabelSelector has no operator for !=,
// which means the same as notin with one value.
func parseSelector(text string) (*metav1.LabelSelector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	parsed := &metav1.LabelSelector{}
	for _, requirement := range requirements {
		expression := metav1.LabelSelectorRequirement{Key: requirement.Key(), Values: requirement.ValuesUnsorted()}
		switch operator := requirement.Operator(); operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			expression.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			expression.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			expression.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			expression.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("operator %q cannot be used here", operator)
		}
		slices.Sort(expression.Values)
		parsed.MatchExpressions = append(parsed.MatchExpressions, expression)
	}
	return parsed, nil
}

var kinds = func() map[string]v1alpha1.WorkloadReference {
	all := map[string]v1alpha1.WorkloadReference{}
	for kind, names := range map[string][]string{
		"apps/v1/Deployment": {"deployment", "deployments", "deploy"}, "apps/v1/ReplicaSet": {"replicaset", "replicasets", "rs"},
		"apps/v1/StatefulSet": {"statefulset", "statefulsets", "sts"}, "apps/v1/DaemonSet": {"daemonset", "daemonsets", "ds"},
		"apps.kruise.io/v1alpha1/CloneSet":   {"cloneset", "clonesets", "clone"},
		"apps.kruise.io/v1beta1/StatefulSet": {"statefulset.apps.kruise.io", "statefulsets.apps.kruise.io", "asts"},
		"apps.kruise.io/v1alpha1/DaemonSet":  {"daemonset.apps.kruise.io", "daemonsets.apps.kruise.io", "daemon"},
	} {
		i := strings.LastIndexByte(kind, '/')
		for _, name := range names {
			all[name] = v1alpha1.WorkloadReference{APIVersion: kind[:i], Kind: kind[i+1:]}
		}
	}
	return all
}()

// Errors of a restart.
var (
	// ErrFailed means that the restart has ended without success.
	ErrFailed  = errors.New("the restart failed")
	errTimeout = fmt.Errorf("the restart is %w", console.ErrTimeout)
)

// Run restarts the target.
func Run(ctx context.Context, config Config, target Target) error {
	r := &restarter{Config: config}
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, config.Timeout, errTimeout)
		defer cancel()
	}
	restart := r.rollout
	if target.Pod != "" {
		restart = func(ctx context.Context, target Target) error { return r.pod(ctx, target.Pod) }
	}
	return console.Ended(ctx, restart(ctx, target))
}

type restarter struct {
	Config
	selector labels.Selector // selects the pods of a rollout
	replicas int32           // number of pods of its workload
	// workloadMinReady is minReadySeconds of its workload.
	workloadMinReady int32
}

func (r *restarter) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: name}
}

func (r *restarter) annotations() map[string]string {
	if r.Reason == "" {
		return nil
	}
	return map[string]string{v1beta1.AnnotationReason: r.Reason}
}

// create creates an object, or only sends a dry run.
func (r *restarter) create(ctx context.Context, object client.Object) error {
	var options []client.CreateOption
	if r.DryRun {
		options = append(options, client.DryRunAll)
	}
	err := r.API.Create(ctx, object, options...)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: this cluster does not have the CRD; install Refit first: %w", ErrFailed, err)
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return console.Refused(err)
	}
	if err == nil && !r.DryRun {
		return r.Made.Begun(r.API.Scheme(), object)
	}
	return err
}

// only returns the only container of the pod, for commands that name none.
func only(pod *corev1.Pod) ([]string, error) {
	if len(pod.Spec.Containers) == 1 {
		return []string{pod.Spec.Containers[0].Name}, nil
	}
	names := make([]string, len(pod.Spec.Containers))
	for i, container := range pod.Spec.Containers {
		names[i] = container.Name
	}
	return nil, fmt.Errorf("%w: pod %s has the containers %s; name those to restart with --container", console.ErrUsage, pod.Name, strings.Join(names, ", "))
}

// interrupted returns the error of a wait that ends before the restart: what it waited for, and how to follow or stop
// the restart.
func (r *restarter) interrupted(ctx context.Context, kind, name, last, stop string) error {
	return fmt.Errorf("%w; the restart continues\n  last:      %s\n  follow it: kubectl get %s %s --namespace=%s --watch\n  stop it:   %s",
		console.Cause(ctx), cmp.Or(last, "nothing"), kind, name, r.Namespace, stop)
}
