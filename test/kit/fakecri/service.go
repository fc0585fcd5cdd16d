package fakecri

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// killed is the exit code of a container that SIGKILL ended.
const killed = 137

// Command is how an exec ends.
type Command struct {
	Stdout, Stderr string
	ExitCode       int32
	Takes          time.Duration
	// HoldsOutput is a command that leaves a child behind with its output open: the runtime waits
	// for the output to end, past the timeout, until the caller goes away.
	HoldsOutput bool
}

// Version implements CRI.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: Name, RuntimeVersion: "v0.0.0-fake", RuntimeApiVersion: "v1",
	}, nil
}

// CreateContainer implements CRI.
func (r *Runtime) CreateContainer(_ context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[req.GetPodSandboxId()]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "sandbox %q: not found", req.GetPodSandboxId())
	}
	config := req.GetConfig()
	in := r.addInstance(s, config, r.Programs[joined(config.GetCommand(), config.GetArgs())])
	return &runtimeapi.CreateContainerResponse{ContainerId: in.id}, nil
}

// StartContainer implements CRI.
func (r *Runtime) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	in, err := r.find(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if err := (Fault{Delay: in.program.StartLatency}).strike(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil, status.Errorf(codes.Unknown, "container %q is in state %s", in.id, in.state)
	}
	r.begin(in)
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer implements CRI as containerd does: the signal is sent once in the container's life,
// a caller that goes away takes the pending SIGKILL along, and what is gone is success.
func (r *Runtime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	done := &runtimeapi.StopContainerResponse{}
	in, err := r.find(req.GetContainerId())
	if err != nil {
		return done, nil //nolint:nilerr // CRI: idempotent
	}
	if grace := time.Duration(req.GetTimeout()) * time.Second; grace > 0 {
		r.terminate(in)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-in.exited:
			return done, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-timer.C:
		}
	}
	r.Exit(in.id, killed)
	return done, nil
}

func (r *Runtime) terminate(in *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.state == runtimeapi.ContainerState_CONTAINER_EXITED || in.termSent || in.program.IgnoreTerm {
		return
	}
	in.termSent = true
	if in.program.TermDelay == 0 {
		r.end(in, in.program.ExitCode)
		return
	}
	r.after(in.program.TermDelay, func() { r.Exit(in.id, in.program.ExitCode) })
}

// RemoveContainer implements CRI.
func (r *Runtime) RemoveContainer(_ context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if in, err := r.find(req.GetContainerId()); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.instances[in.id] != nil {
			r.remove(in)
		}
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ListContainers implements CRI.
func (r *Runtime) ListContainers(_ context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := &runtimeapi.ListContainersResponse{}
	filter := req.GetFilter()
	for _, in := range r.oldestFirst() {
		if !matches(in.config.GetLabels(), filter.GetLabelSelector()) ||
			(filter.GetState() != nil && filter.GetState().GetState() != in.state) ||
			(filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != in.sandboxID) ||
			(filter.GetId() != "" && filter.GetId() != in.id) {
			continue
		}
		res.Containers = append(res.Containers, &runtimeapi.Container{
			Id: in.id, PodSandboxId: in.sandboxID, Metadata: in.config.GetMetadata(), Image: in.config.GetImage(),
			ImageId: imageID(in), ImageRef: imageID(in), State: in.state, CreatedAt: in.created,
			Labels: in.config.GetLabels(), Annotations: in.config.GetAnnotations(),
		})
	}
	return res, nil
}

// ContainerStatus implements CRI.
func (r *Runtime) ContainerStatus(_ context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	in, err := r.find(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	res := &runtimeapi.ContainerStatusResponse{Status: statusOf(in)}
	if req.GetVerbose() {
		res.Info = verbose(in)
	}
	return res, nil
}

// ExecSync implements CRI.
func (r *Runtime) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	in, err := r.find(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	state := in.state
	r.mu.Unlock()
	if state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.Unknown, "container is in %s state", state)
	}
	command, ok := r.Commands[joined(req.GetCmd())]
	if !ok {
		return nil, status.Errorf(codes.Unknown, "start exec: executable file not found: %q", req.GetCmd())
	}
	timeout := time.Duration(req.GetTimeout()) * time.Second
	if timeout > 0 && command.Takes > timeout {
		if err := (Fault{Delay: timeout}).strike(ctx); err != nil {
			return nil, err
		}
		return nil, status.Errorf(codes.DeadlineExceeded, "timeout %s exceeded", timeout)
	}
	if err := (Fault{Delay: command.Takes, Hang: command.HoldsOutput}).strike(ctx); err != nil {
		return nil, err
	}
	return &runtimeapi.ExecSyncResponse{
		Stdout: []byte(command.Stdout), Stderr: []byte(command.Stderr), ExitCode: command.ExitCode,
	}, nil
}

func statusOf(in *instance) *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: in.id, Metadata: in.config.GetMetadata(), State: in.state,
		CreatedAt: in.created, StartedAt: in.started, FinishedAt: in.finished, ExitCode: in.exitCode,
		Image: in.config.GetImage(), ImageId: imageID(in), ImageRef: imageID(in),
		Labels: in.config.GetLabels(), Annotations: in.config.GetAnnotations(),
	}
	if in.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		s.Reason = "Completed"
		if in.exitCode != 0 {
			s.Reason = "Error"
		}
	}
	return s
}

// find takes a whole ID or the beginning of one ID only, as real runtimes do.
func (r *Runtime) find(id string) (*instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.instances[id]; in != nil {
		return in, nil
	}
	found := slices.DeleteFunc(r.oldestFirst(), func(in *instance) bool {
		return id == "" || len(in.id) < len(id) || in.id[:len(id)] != id
	})
	if len(found) != 1 {
		return nil, status.Errorf(codes.NotFound, "container %q: not found", id)
	}
	return found[0], nil
}

func imageID(in *instance) string { return "sha256:fake-" + in.config.GetImage().GetImage() }

func matches(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
