package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

const (
	// taintKey is the key of the taint of virtual nodes. Pods that do not tolerate it are not scheduled there.
	taintKey = "virtual-kubelet.io/provider"
	// component is the source of the Events of virtual-kubelet.
	component = "virtual-node"
	// workers is how many pods are created or updated at the same time.
	workers = 4
)

// runNode registers the node and runs its pods until the context ends.
func runNode(ctx context.Context, client kubernetes.Interface, name string, p *provider) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	ofNode := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", name).String()
	}))
	all := informers.NewSharedInformerFactory(client, 0)
	pods, err := node.NewPodController(node.PodControllerConfig{
		PodClient: client.CoreV1(), Provider: p,
		EventRecorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
		PodInformer:   ofNode.Core().V1().Pods(), SecretInformer: all.Core().V1().Secrets(),
		ConfigMapInformer: all.Core().V1().ConfigMaps(), ServiceInformer: all.Core().V1().Services(),
	})
	if err != nil {
		return fmt.Errorf("create pod controller: %w", err)
	}
	registration, err := node.NewNodeController(node.NaiveNodeProvider{}, object(name), client.CoreV1().Nodes(),
		node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(corev1.NamespaceNodeLease), node.DefaultLeaseDuration))
	if err != nil {
		return fmt.Errorf("create node controller: %w", err)
	}
	for _, factory := range []informers.SharedInformerFactory{ofNode, all} {
		factory.Start(ctx.Done())
		defer factory.Shutdown()
		factory.WaitForCacheSync(ctx.Done())
	}
	defer cancel() // before the shutdown of the informers, which waits for their end
	return runAll(ctx, cancel, map[string]func(context.Context) error{
		"pod controller":  func(ctx context.Context) error { return pods.Run(ctx, workers) },
		"node controller": registration.Run,
		"provider":        p.run,
	})
}

// runAll runs the parts until one of them or the context ends.
func runAll(ctx context.Context, cancel func(), parts map[string]func(context.Context) error) error {
	var running sync.WaitGroup
	failures := make(chan error, len(parts))
	for name, part := range parts {
		running.Go(func() {
			defer cancel()
			if err := part(ctx); err != nil && ctx.Err() == nil {
				failures <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	running.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// object is the node as it is registered. The label type is what Refit and OpenKruise recognize virtual nodes by.
func object(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("100"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"type": "virtual-kubelet", corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: taintKey, Value: "refit", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "VirtualNodeReady"}},
		},
	}
}
