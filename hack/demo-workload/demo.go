package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/hack/demokit"
)

const (
	namespace = "refit-workload-demo"
	replicas  = 10
	port      = 8080
)

//go:embed web.yaml
var deploymentManifest []byte

//go:embed policy.yaml
var policyManifest []byte

// demo is the demo's part of the cluster.
type demo struct {
	*demokit.Demo
	client *demokit.Client
}

func newDemo(on *demokit.Demo) (*demo, error) {
	api, err := on.Connect(refitv1alpha1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &demo{Demo: on, client: api}, nil
}

// setUp creates everything, instead of what an earlier demo has left.
func (d *demo) setUp(ctx context.Context) error {
	if err := d.client.Remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := d.client.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	web, policy := &appsv1.Deployment{}, &refitv1alpha1.InPlaceUpdatePolicy{}
	if err := errors.Join(yaml.UnmarshalStrict(deploymentManifest, web), yaml.UnmarshalStrict(policyManifest, policy)); err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	for _, deployment := range []*appsv1.Deployment{web, native(web, *policy.Spec.DrainSeconds)} {
		if err := d.create(ctx, deployment); err != nil {
			return err
		}
	}
	if err := d.client.Create(ctx, policy); err != nil {
		return fmt.Errorf("create InPlaceUpdatePolicy: %w", err)
	}
	return d.isHeld(ctx)
}

// native is the same Deployment, rolled out by its controller. Its pods drain in a preStop hook.
func native(like *appsv1.Deployment, drainSeconds int32) *appsv1.Deployment {
	d := like.DeepCopy()
	d.Name = "native"
	d.Spec.Selector.MatchLabels = map[string]string{"app": d.Name}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.ReadinessGates = nil
	d.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(drainSeconds)}}}
	return d
}

// create creates a Deployment with a Service, and waits until its pods are ready.
func (d *demo) create(ctx context.Context, deployment *appsv1.Deployment) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment.Name}}
	service.Spec.Selector = deployment.Spec.Selector.MatchLabels
	service.Spec.Ports = []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(port)}}
	for _, object := range []client.Object{deployment, service} {
		if err := d.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return d.until(ctx, "the pods of "+deployment.Name, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Status.AvailableReplicas == replicas, err
	})
}

// isHeld waits until the API server knows the policy, and would hold the Deployment in a write that changes its template.
func (d *demo) isHeld(ctx context.Context) error {
	return d.until(ctx, "the API server to hold Deployment web", func(ctx context.Context) (bool, error) {
		out, err := d.RunKubectl(ctx, "", "--namespace="+namespace, "set", "image", "deployment/web", "app=x", "--dry-run=server", "--output=jsonpath={.metadata.labels}")
		return strings.Contains(out, refitv1alpha1.LabelHeld), err
	})
}

// explain shows the policy.
func (d *demo) explain() {
	fmt.Fprintf(d.Out, "\n$ kubectl apply -f policy.yaml\n")
	for line := range strings.Lines(string(policyManifest)) {
		fmt.Fprint(d.Out, "  ", line)
	}
	fmt.Fprintf(d.Out, "\n  Whoever changes the template of Deployment web: its pods are updated in place. Deployment native has no policy.\n")
}

// pods are the pods of a Deployment, by name.
func (d *demo) pods(ctx context.Context, app string) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := d.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods, nil
}

func (d *demo) until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := demokit.Until(ctx, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

// progressing is status and reason of the condition Progressing, for the present template.
func progressing(policy *refitv1alpha1.InPlaceUpdatePolicy) (is, message string) {
	c := meta.FindStatusCondition(policy.Status.Conditions, refitv1alpha1.ConditionProgressing)
	if c == nil {
		return "", ""
	}
	return string(c.Status) + " " + c.Reason, c.Message
}

// since is the time that has passed, in seconds.
func since(began time.Time) float64 { return time.Since(began).Seconds() }
