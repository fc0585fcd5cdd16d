package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/kit/logbuffer"
)

const (
	// virtualProgram names the environment variable with the path of the program of test/virtualnode. If it is set, the example pods of
	// deploy/sidecar run on a virtual node.
	virtualProgram = "REFIT_VIRTUAL_NODE"
	virtualTaint   = "virtual-kubelet.io/provider"
	stopTimeout    = 10 * time.Second
)

// virtualNode is a node of test/virtualnode for one test.
type virtualNode struct {
	name    string
	backend string // namespace with the pods that run the pods of the node
	log     logbuffer.Buffer
}

// needsVirtualNode skips the test where the fixture has no virtual node.
func (s *fixture) needsVirtualNode(t *testing.T) {
	t.Helper()
	if s.virtual == nil {
		t.Skip("needs a virtual node: make e2e-virtual")
	}
}

// startVirtualNode starts the program and waits until the node is ready.
func (s *fixture) startVirtualNode(program string) {
	s.t.Helper()
	node := &virtualNode{name: s.namespace + "-virtual", backend: s.namespace + "-backend"}
	backend := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: node.backend}}
	s.check(s.Create(s.t.Context(), backend), "make the namespace of the backend")
	command := exec.CommandContext(context.WithoutCancel(s.t.Context()), program,
		"--name="+node.name, "--kubeconfig="+os.Getenv("KUBECONFIG"), "--backend-namespace="+node.backend)
	command.Stdout, command.Stderr = &node.log, &node.log
	s.check(command.Start(), "start the virtual node")
	s.virtual = node
	s.t.Cleanup(func() { s.stopVirtualNode(command, backend) })
	s.await("the virtual node to be ready", func(ctx context.Context) (bool, error) {
		var object corev1.Node
		err := s.Get(ctx, client.ObjectKey{Name: node.name}, &object)
		return err == nil && object.Labels["type"] == "virtual-kubelet", client.IgnoreNotFound(err)
	})
}

func (s *fixture) stopVirtualNode(command *exec.Cmd, backend *corev1.Namespace) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cleanTimeout)
	defer cancel()
	if s.t.Failed() {
		out, _ := s.kubectl(ctx, "", "get", "pods,events", "--namespace", s.virtual.backend, "--output=wide")
		s.t.Logf("virtual node %s:\n%s\nits backend at the end:\n%s", s.virtual.name, s.virtual.log.String(), out)
	}
	err := command.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopTimeout, func() { _ = command.Process.Kill() })
	if err = errors.Join(err, command.Wait()); err != nil {
		s.t.Errorf("end of the virtual node: %v\n%s", err, s.virtual.log.String())
	}
	kill.Stop()
	for _, object := range []client.Object{backend, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.virtual.name}}} {
		if err := s.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			s.t.Logf("clean: %v", err)
		}
	}
}

// placed makes a pod one of the virtual node, if the fixture has one.
func (s *fixture) placed(pod *corev1.Pod) *corev1.Pod {
	if s.virtual == nil {
		return pod
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: virtualTaint, Operator: corev1.TolerationOpExists})
	return on(s.virtual.name, pod)
}

// at returns the namespace and the name of the pod with the containers of a pod: a virtual node has no API for logs, exec and
// port-forward, so for a pod there it is the pod of the backend.
func (s *fixture) at(ctx context.Context, name string) (string, string) {
	if s.virtual == nil {
		return s.namespace, name
	}
	var pod corev1.Pod
	var pods corev1.PodList
	if err := s.Get(ctx, s.key(name), &pod); err != nil {
		return s.namespace, name
	}
	err := s.List(ctx, &pods, client.InNamespace(s.virtual.backend), client.MatchingLabels{"virtual-node.test/pod-uid": string(pod.UID)})
	if err != nil || len(pods.Items) != 1 {
		return s.namespace, name
	}
	return s.virtual.backend, pods.Items[0].Name
}
