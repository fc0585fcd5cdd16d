package e2e_test

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/refit-project/refit/test/kit/logbuffer"
)

// inContainer runs a shell line in a container of a pod, as kubectl exec does, and returns all it wrote. The error also says with which code
// it has ended.
func (s *fixture) inContainer(ctx context.Context, pod, container, line string) (string, error) {
	namespace, name := s.at(ctx, pod)
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return "", err
	}
	url := clients.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: []string{"sh", "-c", line}, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(s.config, "GET", url.String())
	if err != nil {
		return "", err
	}
	var out logbuffer.Buffer // both streams are written at the same time
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &out})
	return out.String(), errors.Join(err, ctx.Err())
}
