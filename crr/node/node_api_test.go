package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/crr"
)

// WriteStatus stores a status like the API server.
func (n *node) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	return n.write(request, func(stored *crr.Request) {
		stored.Status = *status.DeepCopy()
		n.writes = append(n.writes, *status.DeepCopy())
		if n.kruise {
			pruneLikeOpenKruise(&stored.Status)
			if n.alpha {
				stored.Status.Conditions = nil
			}
		}
	})
}

// pruneLikeOpenKruise drops what OpenKruise's CRDs do not have.
func pruneLikeOpenKruise(status *crr.Status) {
	for i := range status.ContainerRecreateStates {
		status.ContainerRecreateStates[i].ContainerID = ""
	}
}

func (n *node) write(request *crr.Request, change func(stored *crr.Request)) (*crr.Request, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		if err := n.fail(request); err != nil {
			return nil, err
		}
	}
	current := n.requests[request.Name]
	if current == nil || current.UID != request.UID {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "containerrecreaterequests"}, request.Name)
	}
	if current.ResourceVersion != request.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "containerrecreaterequests"}, request.Name, nil)
	}
	stored := current.DeepCopy()
	change(stored)
	n.requestSource.Modify(stored)
	n.requests[request.Name] = stored
	return stored.DeepCopy(), nil
}

// deleteRequest deletes a request, or removes the label by which a daemon finds it.
func (n *node) deleteRequest(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestSource.Delete(n.requests[name].DeepCopy())
	delete(n.requests, name)
}

func (n *node) KeepsConditions() bool { return !n.alpha }

// Annotate annotates a request.
func (n *node) Annotate(_ context.Context, request *crr.Request, key, value string) (*crr.Request, error) {
	if n.refuseAnnotations {
		return nil, errors.New("admission webhook denied the request")
	}
	return n.write(request, func(stored *crr.Request) { metav1.SetMetaDataAnnotation(&stored.ObjectMeta, key, value) })
}

// podAPI is what the API server does with pods.
type podAPI struct{ *node }

func (n podAPI) Pod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	if pod := n.podNow(name); pod != nil && pod.Namespace == namespace {
		return pod, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
}

func (n podAPI) Annotate(context.Context, *corev1.Pod, string, string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.touches++
	return nil
}

func (n *node) Event(about corev1.ObjectReference, _, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, fmt.Sprintf("%s %s: %s: %s", about.Kind, about.Name, reason, message))
}

func (n *node) eventTexts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.events...)
}
