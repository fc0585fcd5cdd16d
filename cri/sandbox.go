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
	addresses, err := c.SandboxAddresses(ctx, podUID)
	if err != nil || len(addresses) == 0 {
		return "", err
	}
	return addresses[0].String(), nil
}

// SandboxAddresses returns the addresses of the pod's newest ready sandbox, the primary one first: one for each IP family. For a
// pod on the host's network there is none, and no error. Without a ready sandbox the error is ErrNotFound.
func (c *Client) SandboxAddresses(ctx context.Context, podUID string) ([]netip.Addr, error) {
	if podUID == "" {
		return nil, fmt.Errorf("sandbox address: %w: empty pod UID", ErrNotFound)
	}
	list, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{kubelet.LabelPodUID: podUID},
	}})
	if err != nil {
		return nil, err
	}
	var newest *runtimeapi.PodSandbox
	for _, s := range list.GetItems() {
		ready := s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		if ready && s.GetLabels()[kubelet.LabelPodUID] == podUID && (newest == nil || s.GetCreatedAt() > newest.GetCreatedAt()) {
			newest = s
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("sandbox of pod %s: %w: none is ready", clip(podUID), ErrNotFound)
	}
	res, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: newest.GetId()})
	if err != nil {
		return nil, err
	}
	return addressesOf(newest.GetId(), res.GetStatus().GetNetwork())
}

// addressesOf parses the addresses of a sandbox, because they become part of URLs.
func addressesOf(sandbox string, network *runtimeapi.PodSandboxNetworkStatus) ([]netip.Addr, error) {
	var addresses []netip.Addr
	texts := []string{network.GetIp()}
	for _, more := range network.GetAdditionalIps() {
		texts = append(texts, more.GetIp())
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("sandbox %s: address %q: %w", shortID(sandbox), clip(text), err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
