package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestNativeSidecarIsRecreated(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	mesh := shell("mesh", obedient)
	mesh.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers = []corev1.Container{mesh}
	before := s.start(pod)
	s.ask("r", "web/mesh")
	s.succeeded("r")
	s.restarted(before, "mesh", 1)
	s.untouched(before, "app")
}

func TestInitAndEphemeralContainersAreRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.InitContainers = []corev1.Container{shell("setup", "exit 0")}
	s.start(pod)
	s.run("debug", "web", "--image="+image, "--container=debug", "--quiet", "--", "sleep", "1000")
	s.refused(s.newRequest("r", "web/setup"), "spec.containers[0].name", "setup is an init container", "native sidecars")
	s.refused(s.newRequest("r", "web/debug"), "spec.containers[0].name", "debug is an ephemeral container", "never restarts")
}

// ending is a container that ends with that code on TERM.
func ending(code string) corev1.Container {
	return shell("app", `trap 'exit `+code+`' TERM; while :; do sleep 1000 & wait $!; done`)
}

// overridden waits for the end of a request that restarts what the policy leaves ended. Where kubelet has reported the end
// before the instance was removed it never takes that back, and the request has to say so; else it succeeds.
func (s *fixture) overridden(before *corev1.Pod, request string) {
	s.t.Helper()
	old := status(before, "app").ContainerID
	pod := s.awaitPod(before.Name, "to tell of app", func(pod *corev1.Pod) bool {
		now := status(pod, "app")
		return now.State.Terminated != nil || now.ContainerID != old && now.State.Running != nil
	})
	if status(pod, "app").State.Terminated != nil {
		s.failed(request, "RestartNotReported", "container app", "never takes that back")
		return
	}
	s.succeeded(request)
	s.restarted(before, "app", 1)
}

func TestRestartPolicyNeverIsRefusedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("job", ending("0"), shell("other", obedient))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	before := s.start(pod)
	s.refused(s.newRequest("r", "job/app"), "spec.containers[0].name", "restartPolicy is Never", "refit.dev/restart-policy: override")
	s.untouched(before, "app")
	s.ask("override", "job/app", annotate(v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride))
	s.overridden(before, "override")
	s.untouched(before, "other")
}

func TestRestartPolicyOnFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code      string
		change    []func(*request)
		forbidden bool
	}{
		"ends with a failure": {code: "1"},
		"ends well":           {code: "0", forbidden: true},
		"ends well, override": {code: "0", change: []func(*request){annotate(v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.podOf("job", ending(tc.code), shell("other", obedient))
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			before := s.start(pod)
			s.ask("r", "job/app", tc.change...)
			if tc.forbidden {
				s.failed("r", "RestartPolicyForbidsRestart", "container app", "code 0", "OnFailure")
				return
			}
			if len(tc.change) > 0 {
				s.overridden(before, "r")
				return
			}
			s.succeeded("r")
			s.restarted(before, "app", 1)
		})
	}
}

// TestStaticPod restarts a container of a pod that kubelet has from a file: its UID in the runtime is not the mirror's.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsOwnCluster(t)
	node := s.nodes[0]
	pod := s.podOf("static", shell("app", obedient))
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	manifest, err := yaml.Marshal(pod)
	s.check(err, "write manifest")
	folder := filepath.Join(s.state, "nodes", node, "var", "lib", "kubelet", "manifests")
	s.check(os.MkdirAll(folder, 0o755), "make folder of static pods")
	file := filepath.Join(folder, s.namespace+".yaml")
	s.check(os.WriteFile(file, manifest, 0o600), "write manifest")
	t.Cleanup(func() {
		s.check(os.Remove(file), "remove manifest")
		err := until(context.WithoutCancel(t.Context()), patience, func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, s.key("static-"+node), &corev1.Pod{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Errorf("wait for the mirror pod to go: %v", err)
		}
	})
	before := &corev1.Pod{}
	s.await("mirror pod", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("static-"+node), before)
		return err == nil && status(before, "app").Ready, client.IgnoreNotFound(err)
	})
	s.ask("r", "static-"+node+"/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
}
