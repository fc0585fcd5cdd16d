package cri

import (
	"context"
	"fmt"
	"net/netip"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

// SandboxIP returns the primary address of the pod's newest ready sandbox, at which the pod's ports can be reached from the
// node. A pod on the host's network has no address in CRI: the result is "" and no error, and callers use the node's
// address. Without a ready sandbox the error is ErrNotFound.
func (c *Client) SandboxIP(ctx context.Context, podUID string) (string, error) {
	if podUID == "" {
		return "", fmt.Errorf("sandbox address: %w: empty pod UID", ErrNotFound)
	}
	list, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{kubelet.LabelPodUID: podUID},
	}})
	if err != nil {
		return "", err
	}
	var newest *runtimeapi.PodSandbox
	for _, s := range list.GetItems() {
		ready := s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		if ready && s.GetLabels()[kubelet.LabelPodUID] == podUID && (newest == nil || s.GetCreatedAt() > newest.GetCreatedAt()) {
			newest = s
		}
	}
	if newest == nil {
		return "", fmt.Errorf("sandbox of pod %s: %w: none is ready", clip(podUID), ErrNotFound)
	}
	res, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: newest.GetId()})
	if err != nil {
		return "", err
	}
	ip := res.GetStatus().GetNetwork().GetIp()
	if ip == "" {
		return "", nil
	}
	// The address becomes part of URLs, so it must be valid.
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "", fmt.Errorf("sandbox %s: address %q: %w", shortID(newest.GetId()), clip(ip), err)
	}
	return addr.String(), nil
}
