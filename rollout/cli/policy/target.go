package policy

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// Config is the configuration of all commands.
type Config struct {
	API       client.WithWatch
	Namespace string
	Output    *console.Output
	// Timeout limits the wait for the end of an update; zero means no limit. The update continues afterwards.
	Timeout time.Duration
}

// Target is a workload, or the workload of an InPlaceUpdatePolicy.
type Target struct {
	Kind, Name string // Kind is empty for a policy
}

// ParseTarget parses deployment/NAME and the like, or inplaceupdatepolicy/NAME.
func ParseTarget(text string) (Target, error) {
	if kind, name, ok := console.KindName(text); ok && console.IsPolicy(kind) {
		return Target{Name: name}, nil
	}
	parsed, err := rolloutcli.ParseTarget(text, "")
	if text == "" {
		err = fmt.Errorf("%w: name a workload, as deployment/web", console.ErrUsage)
	}
	if err != nil {
		return Target{}, err
	}
	if w := parsed.Workload; w != nil && w.APIVersion == "apps/v1" && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, w.Kind) {
		return Target{Kind: w.Kind, Name: w.Name}, nil
	}
	return Target{}, fmt.Errorf("%w: %q: want a deployment, statefulset or daemonset, or an inplaceupdatepolicy", console.ErrUsage, text)
}

// String returns the workload as users name it.
func (t Target) String() string {
	if t.Kind == "" {
		return "inplaceupdatepolicy/" + t.Name
	}
	return strings.ToLower(t.Kind) + "/" + t.Name
}

// command is one command in progress.
type command struct {
	Config
	target Target
}

// begin resolves the target: a policy stands for its workload.
func begin(ctx context.Context, config Config, target Target) (*command, error) {
	c := &command{Config: config, target: target}
	if target.Kind != "" {
		return c, nil
	}
	var policy v1alpha1.InPlaceUpdatePolicy
	if err := config.API.Get(ctx, c.key(target.Name), &policy); err != nil {
		return nil, noKind(err)
	}
	c.target = Target{Kind: policy.Spec.TargetRef.Kind, Name: policy.Spec.TargetRef.Name}
	return c, nil
}

func (c *command) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: name}
}

// noKind explains that the cluster does not have the CRD.
func noKind(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: this cluster does not have the CRD of InPlaceUpdatePolicy; install Refit first: %w", console.ErrFailed, err)
	}
	return err
}

var errNoPolicy = errors.New("no InPlaceUpdatePolicy")

// policy returns the policy of the workload: the oldest one, as refit-manager takes it. The error wraps errNoPolicy if there is none.
func (c *command) policy(ctx context.Context) (*v1alpha1.InPlaceUpdatePolicy, error) {
	var list v1alpha1.InPlaceUpdatePolicyList
	if err := c.API.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("list InPlaceUpdatePolicies: %w", noKind(err))
	}
	list.Items = slices.DeleteFunc(list.Items, func(p v1alpha1.InPlaceUpdatePolicy) bool {
		return p.Spec.TargetRef.Kind != c.target.Kind || p.Spec.TargetRef.Name != c.target.Name
	})
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("%w: there is %w for %s in namespace %s; kubectl refit set creates one, and kubectl rollout is for workloads without",
			console.ErrRefused, errNoPolicy, c.target, c.Namespace)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.InPlaceUpdatePolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return &list.Items[0], nil
}

// edit writes a change of the spec of a policy.
func (c *command) edit(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, change func(*v1alpha1.InPlaceUpdatePolicySpec)) error {
	before := policy.DeepCopy()
	change(&policy.Spec)
	if err := c.API.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return refused(fmt.Errorf("write InPlaceUpdatePolicy %s: %w", policy.Name, err))
	}
	return nil
}

// refused marks errors of requests that the API server does not allow.
func refused(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return console.Refused(err)
	}
	return err
}

// pods reads the pods that the workload controls, in the form that follows and previews need.
func (c *command) pods(ctx context.Context, of *stored) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.API.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: of.selector}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if of.owns(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}
