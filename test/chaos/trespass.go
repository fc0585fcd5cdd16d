package chaos

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/load"
)

const (
	ghost          = cluster.Label + "-ghost" // a node without a kubelet, its pod and its request
	ghostNamespace = ghost
	trespassEvery  = 5 * time.Second
)

func ghostNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ghost}, Spec: corev1.NodeSpec{Unschedulable: true}}
}

func ghostProbes() *v1alpha1.NodePodProbe {
	return &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: ghost}}
}

// raiseGhost makes objects of a node that is not ours to touch.
func (r *run) raiseGhost(ctx context.Context) error {
	if err := r.cluster.Namespace(ctx, ghostNamespace); err != nil {
		return err
	}
	pod := r.cluster.Pod(ghostNamespace, ghost, ghost, cluster.Shapes[0])
	for _, object := range []client.Object{ghostNode(), pod, ghostProbes()} {
		if err := client.IgnoreAlreadyExists(r.cluster.Create(ctx, object)); err != nil {
			return fmt.Errorf("make ghost: %w", err)
		}
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: r.cluster.Image, ContainerID: "containerd://" + fmt.Sprintf("%064d", 1), Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	if err := r.cluster.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("make ghost run: %w", err)
	}
	order := &load.Request{ObjectMeta: metav1.ObjectMeta{Namespace: ghostNamespace, Name: ghost}}
	order.Spec.PodName = ghost
	order.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
	if err := r.cluster.Create(ctx, order); err != nil {
		return fmt.Errorf("make ghost's request: %w", err)
	}
	return nil
}

// trespass tries with the daemon's own token what it must not be able to do. The audit log says what came of it.
func (r *run) trespass(ctx context.Context) error {
	for cluster.Pause(ctx, trespassEvery) == nil {
		intruder, err := r.intruder(ctx)
		if err != nil {
			continue // an outage, or the daemon's pod is just being replaced
		}
		patch := func(object client.Object, text string) {
			_ = intruder.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(text)))
		}
		order := &load.Request{ObjectMeta: metav1.ObjectMeta{Namespace: ghostNamespace, Name: ghost}}
		patch(order, `{"status":{"message":"trespass"}}`)
		patch(cluster.PodNamed(ghostNamespace, ghost), `{"metadata":{"annotations":{"`+v1beta1.AnnotationNudge+`":"trespass"}}}`)
		patch(ghostProbes(), `{"status":{"podProbeStatuses":[{"namespace":"`+ghostNamespace+`","name":"`+ghost+`","uid":"trespass"}]}}`)
		patch(cluster.PodNamed(load.Namespace, "load-00"), `{"metadata":{"labels":{"trespass":"true"}}}`)
	}
	return nil
}

// intruder has the rights of the daemon of the first node.
func (r *run) intruder(ctx context.Context) (client.Client, error) {
	pods, err := r.cluster.SystemPods(ctx, cluster.DaemonName)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != r.cluster.Nodes[0] {
			continue
		}
		token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: cluster.DaemonName}}
		if err := r.cluster.SubResource("token").Create(ctx, account, token); err != nil {
			return nil, fmt.Errorf("ask for a token: %w", err)
		}
		config := rest.AnonymousClientConfig(r.cluster.Config)
		config.BearerToken = token.Status.Token
		return client.New(config, client.Options{Scheme: r.cluster.Scheme()})
	}
	return nil, fmt.Errorf("no daemon on %s", r.cluster.Nodes[0])
}
