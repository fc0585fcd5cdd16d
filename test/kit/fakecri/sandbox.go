package fakecri

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox implements CRI. A sandbox on the host's network has no address.
func (r *Runtime) RunPodSandbox(_ context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ip := "10.0.0.1"
	if req.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE {
		ip = ""
	}
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: r.addSandbox(req.GetConfig(), ip)}, nil
}

// StopPodSandbox implements CRI.
func (r *Runtime) StopPodSandbox(_ context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	r.StopPod(req.GetPodSandboxId())
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// StopPod ends a sandbox and everything in it; the toy kubelet leaves it alone from then on.
func (r *Runtime) StopPod(sandboxID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[sandboxID]
	if s == nil {
		return
	}
	s.ready = false
	for _, in := range r.oldestFirst() {
		if in.sandboxID == s.id {
			r.end(in, killed)
		}
	}
}

// RemovePodSandbox implements CRI.
func (r *Runtime) RemovePodSandbox(_ context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.StopPod(req.GetPodSandboxId())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.oldestFirst() {
		if in.sandboxID == req.GetPodSandboxId() {
			r.remove(in)
		}
	}
	delete(r.sandboxes, req.GetPodSandboxId())
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// ListPodSandbox implements CRI.
func (r *Runtime) ListPodSandbox(_ context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := &runtimeapi.ListPodSandboxResponse{}
	filter := req.GetFilter()
	list := slices.SortedFunc(maps.Values(r.sandboxes), func(a, b *sandbox) int { return cmp.Compare(a.made, b.made) })
	for _, s := range list {
		if !matches(s.config.GetLabels(), filter.GetLabelSelector()) ||
			(filter.GetState() != nil && filter.GetState().GetState() != s.state()) ||
			(filter.GetId() != "" && filter.GetId() != s.id) {
			continue
		}
		res.Items = append(res.Items, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.made,
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return res, nil
}

// PodSandboxStatus implements CRI.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[req.GetPodSandboxId()]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "sandbox %q: not found", req.GetPodSandboxId())
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: s.status()}, nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	network := &runtimeapi.PodSandboxNetworkStatus{Ip: s.ip}
	for _, ip := range s.more {
		network.AdditionalIps = append(network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
	}
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.made,
		Network: network,
		Labels:  s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
	}
}
