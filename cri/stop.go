package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// wholeID is the length of the IDs of all known runtimes. Runtimes also accept a shorter string that is a unique prefix of
// an ID.
const wholeID = 64

// StopContainer sends the container's stop signal, waits for grace (rounded up to whole seconds) and lets the runtime kill
// the container after that; grace 0 kills at once. It returns when the container has ended. A container that has already
// exited, or that the runtime does not know, is a success: CRI defines the call as idempotent, but not every runtime
// implements that.
//
// The call ends with ErrDeadline after grace + Config.StopMargin; the container may still end later. A second call only
// waits: runtimes send the stop signal once to a container. A call that is cancelled early, by ctx or by the end of this
// process, may leave the container without the SIGKILL; the next call sends it.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	if err := c.exact(ctx, id); err != nil {
		return ignoreNotFound(err)
	}
	_, err := c.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: wholeSeconds(grace)})
	return ignoreNotFound(err)
}

// RemoveContainer removes a container and its data in the runtime; a running container is killed first. A container that
// the runtime does not know is a success.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	if err := c.exact(ctx, id); err != nil {
		return ignoreNotFound(err)
	}
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return ignoreNotFound(err)
}

// exact checks that id identifies one container and is not the prefix of another ID: IDs come from API objects that a
// tenant may have written. A whole ID needs no check.
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
