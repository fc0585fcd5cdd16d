package criconformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

// pod is a sandbox on the host's network, labelled as kubelet labels.
type pod struct {
	*suite
	uid, sandbox string
	config       *runtimeapi.PodSandboxConfig
}

func (s *suite) pod(t *testing.T) *pod {
	t.Helper()
	uid := "conformance-" + rand.Text()
	p := &pod{suite: s, uid: uid, config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "refit-conformance", Uid: uid},
		Labels:   labels(uid, ""),
		// A kubelet on the same runtime cleans up after pods it does not know, and where a container has no log file
		// it removes every file of its own working directory (logs.containerLogManager.Clean, "*").
		LogDirectory: t.TempDir(),
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	}}
	res, err := s.raw.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		t.Fatalf("run sandbox: %v", err)
	}
	p.sandbox = res.GetPodSandboxId()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if _, err := s.raw.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
			t.Errorf("stop sandbox: %v", err)
		}
		if _, err := s.raw.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
			t.Errorf("remove sandbox: %v", err)
		}
	})
	return p
}

// start runs a container called app and returns its ID.
func (p *pod) start(t *testing.T, program string, attempt uint32) string {
	t.Helper()
	created, err := p.raw.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: p.sandbox, SandboxConfig: p.config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: attempt},
			Image:    &runtimeapi.ImageSpec{Image: p.Image, UserSpecifiedImage: p.Image},
			Command:  Shell(program),
			Labels:   labels(p.uid, "app"),
			LogPath:  fmt.Sprintf("%d.log", attempt),
			Annotations: map[string]string{
				kubelet.AnnotationContainerHash:  "c0ffee",
				kubelet.AnnotationRestartCount:   "0",
				kubelet.AnnotationPreStopHandler: `{"sleep":{"seconds":1}}`,
			},
			Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: p.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
			}},
		},
	})
	if err != nil {
		t.Fatalf("create container: %v", err)
	}
	id := created.GetContainerId()
	if _, err := p.raw.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		t.Fatalf("start container: %v", err)
	}
	return id
}

func labels(uid, container string) map[string]string {
	l := map[string]string{
		kubelet.LabelPodName:      "pod",
		kubelet.LabelPodNamespace: "refit-conformance",
		kubelet.LabelPodUID:       uid,
	}
	if container != "" {
		l[kubelet.LabelContainerName] = container
	}
	return l
}
