package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/criproxy"
)

const (
	proxyFolder = "refit-chaos" // below the node's /run/containerd, which the daemon mounts
	logFolder   = "refit-chaos" // below the node's /run
	proxyArg    = "--socket-file=/hostvarrun/containerd/" + proxyFolder + "/containerd.sock"
	rolloutTime = 2 * time.Minute
)

// proxies puts a CRI proxy in front of each node's containerd. They run until the group's context ends.
func (r *run) proxies(ctx context.Context, group *errgroup.Group) error {
	for _, node := range r.cluster.nodes {
		folder := r.cluster.run(node, "containerd", proxyFolder)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
			return fmt.Errorf("make folder of the proxy: %w", err)
		}
		wire := &tripwire{node: node}
		r.wires = append(r.wires, wire)
		config := criproxy.Config{
			Listen: filepath.Join(folder, "containerd.sock"), Runtime: r.cluster.socket(node),
			Record: r.record("calls-" + node + ".jsonl"), Faults: r.record("cri-faults.json"),
			Interceptor: wire, Logger: slog.New(slog.DiscardHandler),
		}
		group.Go(func() error { return criproxy.Run(ctx, config) })
	}
	return nil
}

// daemonBehindProxy makes the daemons use the proxies.
func (r *run) daemonBehindProxy(ctx context.Context) error {
	err := r.changeDaemons(ctx, func(set *appsv1.DaemonSet) {
		container := &set.Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Args, proxyArg) {
			container.Args = append(container.Args, proxyArg)
		}
	})
	if err != nil {
		return err
	}
	return until(ctx, "daemons behind the proxies", rolloutTime, func(ctx context.Context) bool {
		seen := func(wire *tripwire) bool { pid, _ := wire.process(); return isDaemon(pid) }
		return r.daemonsReady(ctx) && !slices.ContainsFunc(r.wires, func(w *tripwire) bool { return !seen(w) })
	})
}

// daemonAsBefore undoes all changes of the DaemonSet.
func (r *run) daemonAsBefore(ctx context.Context) error {
	return r.changeDaemons(ctx, func(set *appsv1.DaemonSet) {
		container := &set.Spec.Template.Spec.Containers[0]
		container.Args = slices.DeleteFunc(container.Args, func(arg string) bool { return arg == proxyArg })
		delete(set.Spec.Template.Spec.NodeSelector, absentLabel)
	})
}

func (r *run) changeDaemons(ctx context.Context, change func(*appsv1.DaemonSet)) error {
	var set appsv1.DaemonSet
	if err := r.cluster.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: daemonName}, &set); err != nil {
		return fmt.Errorf("find daemon: %w", err)
	}
	before := set.DeepCopy()
	change(&set)
	if err := r.cluster.Patch(ctx, &set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change daemon: %w", err)
	}
	return nil
}

func (r *run) daemonsReady(ctx context.Context) bool {
	var set appsv1.DaemonSet
	err := r.cluster.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: daemonName}, &set)
	return err == nil && set.Status.ObservedGeneration == set.Generation &&
		set.Status.UpdatedNumberScheduled == set.Status.DesiredNumberScheduled && set.Status.NumberReady == set.Status.DesiredNumberScheduled
}

// pods of a program of ours.
func (r *run) systemPods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.cluster.List(ctx, &list, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": name})
	return list.Items, err
}

// logs makes the folders for the applications' logs.
func (r *run) logs() error {
	for _, node := range r.cluster.nodes {
		folder := r.cluster.run(node, logFolder)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755), os.Chmod(folder, 0o777)); err != nil { // testapp is not root
			return fmt.Errorf("make folder of the logs: %w", err)
		}
	}
	return nil
}

// namespace makes a namespace, and waits for the service account without which no pod is let in.
func (r *run) namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{runLabel: "true"}}}
	if err := r.cluster.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return until(ctx, "service account of "+name, time.Minute, func(ctx context.Context) bool {
		return r.cluster.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
}

// clear takes away what the run has made, as far as the cluster still answers.
func (r *run) clear(ctx context.Context) error {
	errs := []error{r.daemonAsBefore(ctx)}
	var namespaces corev1.NamespaceList
	errs = append(errs, r.cluster.List(ctx, &namespaces, client.HasLabels{runLabel}))
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		errs = append(errs,
			r.cluster.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace.Name), client.GracePeriodSeconds(0)),
			client.IgnoreNotFound(r.cluster.Delete(ctx, namespace)))
	}
	for _, object := range []client.Object{ghostNode(), ghostProbes()} {
		errs = append(errs, client.IgnoreNotFound(r.cluster.Delete(ctx, object)))
	}
	for _, node := range r.cluster.nodes {
		errs = append(errs, os.RemoveAll(r.cluster.run(node, "containerd", proxyFolder)), os.RemoveAll(r.cluster.run(node, logFolder)))
	}
	return errors.Join(errs...)
}
