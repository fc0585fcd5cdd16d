package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// withoutDaemon makes a node a virtual one for the length of the test: the DaemonSet keeps off it.
func (s *fixture) withoutDaemon(node string) {
	s.t.Helper()
	daemons := func(ctx context.Context) (int, error) {
		var pods corev1.PodList
		err := s.List(ctx, &pods, append(daemonPods(), client.MatchingFields{"spec.nodeName": node})...)
		ready := 0
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil || condition(&pod, corev1.PodReady) == corev1.ConditionTrue {
				ready++
			}
		}
		return ready, err
	}
	label := func(ctx context.Context, change string) error {
		_, err := s.kubectl(ctx, "", "label", "node", node, "--overwrite", change)
		return err
	}
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(s.t.Context())
		s.check(label(ctx, "type-"), "take the label away")
		s.check(until(ctx, patience, func(ctx context.Context) (bool, error) {
			n, err := daemons(ctx)
			return n == 1, err
		}), "wait for the daemon to come back")
	})
	s.check(label(s.t.Context(), "type=virtual-kubelet"), "label node")
	s.await("the daemon to leave "+node, func(ctx context.Context) (bool, error) {
		n, err := daemons(ctx)
		return n == 0, err
	})
}

// placedWithoutDaemon returns what places a pod on a node without a daemon: the virtual node, or a node that the daemon leaves.
func (s *sidecarFixture) placedWithoutDaemon() func(*corev1.Pod) *corev1.Pod {
	s.t.Helper()
	if s.virtual != nil {
		return func(pod *corev1.Pod) *corev1.Pod { return pod } // examplePod has placed it
	}
	s.needsOwnCluster(s.t)
	s.needsTwoNodes(s.t)
	node := s.nodes[1]
	s.withoutDaemon(node)
	return func(pod *corev1.Pod) *corev1.Pod { return on(node, pod) }
}

// TestSidecarExecutesRequestsWhereNoDaemonRuns is not parallel: it takes the daemon of a node away, and others need it.
func TestSidecarExecutesRequestsWhereNoDaemonRuns(t *testing.T) {
	s := newSidecarFixture(t, "      # - name: container_recreate", "      - name: container_recreate")
	where := s.placedWithoutDaemon()
	pods := map[string]*corev1.Pod{}
	for name, change := range map[string]func(*corev1.PodSpec){
		"web":   func(*corev1.PodSpec) {},
		"never": func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever },
		"apart": func(spec *corev1.PodSpec) { spec.ShareProcessNamespace = new(false) },
	} {
		pod := where(s.examplePod("pod.yaml"))
		pod.Name = name
		change(&pod.Spec)
		s.check(s.Create(t.Context(), pod), "make pod %s", name)
		pods[name] = pod
	}
	for name := range pods {
		pods[name] = s.awaitPod(name, "to be ready", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue })
	}
	s.ask("web", "web/nginx")
	s.ask("apart", "apart/nginx")
	if err := s.Create(t.Context(), s.newRequest("never", "never/nginx")); err == nil || !strings.Contains(err.Error(), "restartPolicy is Never") {
		t.Errorf("request for a container that nobody would start again: %v", err)
	}
	// A daemon can do what the annotation asks for, a sidecar cannot.
	s.ask("never", "never/nginx", func(r *request) {
		r.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: "override"}
	})
	s.succeeded("web")
	s.restarted(pods["web"], "nginx", 1)
	s.untouched(pods["web"], "refit-sidecar")
	s.serves("web", "Welcome to nginx")

	s.failed("never", "NotPossibleHere", "container nginx", "restartPolicy Never")
	s.failed("apart", "NotPossibleHere", "container nginx", "shareProcessNamespace")
	s.untouched(pods["never"], "nginx")
	s.untouched(pods["apart"], "nginx")

	s.ask("itself", "web/refit-sidecar")
	s.failed("itself", "NotPossibleHere", "does not stop itself")
}
