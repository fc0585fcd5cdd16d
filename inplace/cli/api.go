package cli

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/internal/kube"
)

// API is the access to the cluster that an update needs.
type API interface {
	inplace.API
	// TryPatchPod sends a patch as a dry run, and returns the error of the API server.
	TryPatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) error
	// May reports whether the user has a permission.
	May(ctx context.Context, namespace string, right Right) (bool, error)
	// WatchPod watches one pod, starting at its resource version.
	WatchPod(ctx context.Context, pod *corev1.Pod) (watch.Interface, error)
	// Template returns the pod template of a workload that owns pods.
	Template(ctx context.Context, namespace string, owner metav1.OwnerReference) (*corev1.PodTemplateSpec, error)
}

// Right is a permission that an update needs.
type Right struct{ Verb, Group, Resource, Subresource string }

func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Group != "" {
		text += "." + r.Group
	}
	return text
}

// restartRight is needed to restart containers whose environment has changed.
var restartRight = Right{Verb: "create", Group: v1beta1.Group, Resource: "containerrecreaterequests"}

// Cluster implements API for a cluster.
type Cluster struct {
	*kube.Client
}

// May asks the API server whether the user has a permission.
func (c Cluster) May(ctx context.Context, namespace string, right Right) (bool, error) {
	return c.Client.May(ctx, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: right.Verb, Group: right.Group, Resource: right.Resource, Subresource: right.Subresource,
	})
}

// errRestart means that a ContainerRecreateRequest has ended without a restart.
var errRestart = errors.New("the restart failed")

// Restart creates a ContainerRecreateRequest, see [inplace.RestartRequest].
func (c Cluster) Restart(ctx context.Context, pod *corev1.Pod, instance inplace.Instance) error {
	requests, err := c.Requests(ctx)
	if err != nil {
		return err
	}
	request := inplace.RestartRequest(pod.Name, pod, instance)
	err = requests.Create(ctx, request)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := requests.Get(ctx, request.Namespace, request.Name)
	if err != nil {
		return err
	}
	if !crr.Completed(existing) {
		return nil
	}
	if outcome := crr.OutcomeOf(existing); outcome.Reason != "" {
		return fmt.Errorf("%w: ContainerRecreateRequest %s: %s: %s", errRestart, existing.Name, outcome.Reason, outcome.Message)
	}
	return nil
}
