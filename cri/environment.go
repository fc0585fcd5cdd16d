package cri

import (
	"context"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/foreign"
)

// Environment returns the environment variables that an instance of a container was started with, by name. It reads them
// from the runtime's verbose status (containerd and CRI-O: process.env of the OCI runtime specification), so it needs no
// program in the container and supports values with several lines. The error is ErrUnsupported if the runtime does not
// report them.
func (c *Client) Environment(ctx context.Context, id string) (map[string]string, error) {
	res, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return nil, err
	}
	if got := res.GetStatus().GetId(); got != id {
		return nil, fmt.Errorf("ContainerStatus %s: %w: the runtime answered for %q", shortID(id), ErrNotFound, shortID(got))
	}
	return environment(res.GetInfo()["info"])
}

func environment(info string) (map[string]string, error) {
	var verbose struct {
		Config *struct {
			Envs []struct{ Key, Value string }
		}
		RuntimeSpec *struct {
			Process *struct{ Env []string }
		}
	}
	if info == "" {
		return nil, fmt.Errorf("environment of a container: %w", ErrUnsupported)
	}
	if err := foreign.Object([]byte(info), &verbose); err != nil {
		return nil, fmt.Errorf("environment of a container: read verbose status: %w", err)
	}
	values := map[string]string{}
	switch {
	case verbose.RuntimeSpec != nil && verbose.RuntimeSpec.Process != nil:
		for _, env := range verbose.RuntimeSpec.Process.Env {
			name, value, _ := strings.Cut(env, "=")
			values[name] = value
		}
	case verbose.Config != nil:
		for _, env := range verbose.Config.Envs {
			values[env.Key] = env.Value
		}
	default:
		return nil, fmt.Errorf("environment of a container: %w", ErrUnsupported)
	}
	return values, nil
}
