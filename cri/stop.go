package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// wholeID is the length of the IDs all known runtimes make. They also take a shorter string that is
// the beginning of one ID only.
const wholeID = 64

// StopContainer sends the container's stop signal, waits for grace (rounded up to whole seconds)
// and has it killed after that; grace 0 kills at once. It returns when the container is gone.
// A container that has already exited, or that the runtime does not know, is success: CRI promises
// that the call is idempotent, and not every runtime keeps to it.
//
// The call ends with ErrDeadline at grace + Config.StopMargin; the container may still end later.
// A second call only waits: runtimes send the stop signal once in a container's life. A call that
// is given up early, by ctx or by the loss of this process, may leave the container without the
// SIGKILL; the next call does it.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	if err := c.exact(ctx, id); err != nil {
		return ignoreNotFound(err)
	}
	_, err := c.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: wholeSeconds(grace)})
	return ignoreNotFound(err)
}

// RemoveContainer deletes a container and what the runtime keeps of it; one that is running is
// killed first. A container the runtime does not know is success.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	if err := c.exact(ctx, id); err != nil {
		return ignoreNotFound(err)
	}
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return ignoreNotFound(err)
}

// exact makes sure that id means one container and is not the beginning of another's ID: IDs come
// from API objects that a tenant may have written. A whole ID needs no question.
func (c *Client) exact(ctx context.Context, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("container: empty ID")
	case len(id) >= wholeID:
		return nil
	}
	_, err := c.ContainerStatus(ctx, id)
	return err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
