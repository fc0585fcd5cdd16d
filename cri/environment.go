package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Environment is what an instance of a container was started with, by name. It is taken from the runtime's verbose
// status (containerd and CRI-O: the OCI runtime specification's process.env), so that it needs no program in the
// container and holds values of several lines. ErrUnsupported: the runtime does not tell it.
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
	if err := json.Unmarshal([]byte(info), &verbose); err != nil {
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
