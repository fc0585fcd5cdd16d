package e2e_test

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// sidecarSet applies the spec of a SidecarSet, in YAML, that selects pods of the fixture's namespace with the label
// sidecarset: NAME. Its name is unique in the cluster; it is deleted after the test.
func (s *fixture) sidecarSet(name, spec string) *v1beta1.SidecarSet {
	s.t.Helper()
	set := &v1beta1.SidecarSet{}
	set.Name = s.namespace + "-" + name
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cleanTimeout)
		defer cancel()
		if err := s.Delete(ctx, set); client.IgnoreNotFound(err) != nil {
			s.t.Logf("clean: %v", err)
		}
	})
	out, err := s.kubectl(s.t.Context(), s.sidecarSetManifest(name, spec), "apply", "--server-side", "--filename=-")
	s.check(err, "apply SidecarSet %s: %s", name, out)
	s.check(s.Get(s.t.Context(), client.ObjectKeyFromObject(set), set), "get SidecarSet")
	return set
}

func (s *fixture) sidecarSetManifest(name, spec string) string {
	return strings.NewReplacer("$NAMESPACE", s.namespace, "$NAME", name, "$SPEC", spec).Replace(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: $NAMESPACE-$NAME}
spec: {namespace: $NAMESPACE, selector: {matchLabels: {sidecarset: $NAME}}, $SPEC}
`)
}

// selected is a pod with the label by which sidecarSet selects.
func selected(name string, pod *corev1.Pod) *corev1.Pod {
	pod.Labels = map[string]string{"sidecarset": name}
	return pod
}

// knows waits until every manager injects a container of that name into such pods.
func (s *fixture) knows(pod *corev1.Pod, container string) {
	s.t.Helper()
	inARow := 0
	s.await("injection of "+container, func(ctx context.Context) (bool, error) {
		probe := pod.DeepCopy()
		if err := s.Create(ctx, probe, client.DryRunAll); err != nil {
			return false, nil
		}
		if slices.Contains(containerNames(probe), container) {
			inARow++
		} else {
			inARow = 0
		}
		return inARow >= 10, nil // there are two managers
	})
}

// containerNames of a pod, init containers first.
func containerNames(pod *corev1.Pod) []string {
	var names []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}

func containerOf(pod *corev1.Pod, name string) corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			if c.Name == name {
				return c
			}
		}
	}
	return corev1.Container{}
}

func envOf(pod *corev1.Pod, container, name string) string {
	for _, env := range containerOf(pod, container).Env {
		if env.Name == name {
			return env.Value
		}
	}
	return ""
}

// awaitDryRun waits until such a pod would be stored in this way.
func (s *fixture) awaitDryRun(pod *corev1.Pod, what string, done func(*corev1.Pod) bool) {
	s.t.Helper()
	inARow := 0
	s.await(what, func(ctx context.Context) (bool, error) {
		probe := pod.DeepCopy()
		if err := s.Create(ctx, probe, client.DryRunAll); err != nil || !done(probe) {
			inARow = 0
			return false, nil
		}
		inARow++
		return inARow >= 10, nil
	})
}

// awaitRefusal waits until such pods are refused with these words.
func (s *fixture) awaitRefusal(pod func() *corev1.Pod, words ...string) {
	s.t.Helper()
	s.await("refusal", func(ctx context.Context) (bool, error) {
		err := s.Create(ctx, pod(), client.DryRunAll)
		return err != nil && containsAll(err.Error(), words), nil
	})
}
