package recreate

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/signal"
)

const (
	// minGrace is left to a container after a preStop hook that took the whole grace period, as kubelet leaves it.
	minGrace = 2 * time.Second
	// look is between looks whether a signalled process has ended.
	look = 50 * time.Millisecond
	// killPatience is how long KILL may take to be seen.
	killPatience = 10 * time.Second
)

// Processes are those of the pod; *signal.FS has the methods.
type Processes interface {
	Find(ctx context.Context, sel signal.Selector) ([]signal.Process, error)
	Send(p signal.Process, sig syscall.Signal) error
	Check(p signal.Process) error
}

// first selects the first process of an instance: the one whose end is the container's.
func first(id identity.ContainerID) signal.Selector {
	return signal.Selector{Container: id, Choice: signal.Oldest}
}

// impossible says why the sidecar cannot stop an instance, or nil.
func impossible(ctx context.Context, processes Processes, container string, own string, id identity.ContainerID) error {
	if container == own {
		return errors.New("the sidecar does not stop itself")
	}
	found, err := processes.Find(ctx, first(id))
	if errors.Is(err, signal.ErrNotFound) {
		return errors.New("its processes cannot be seen: the pod does not share its PID namespace (shareProcessNamespace), or hides cgroups")
	}
	if err != nil {
		return err
	}
	return processes.Check(found[0])
}

// stop ends one exact instance as kubelet would: preStop within the grace period, TERM, KILL.
func (e *executor) stop(ctx context.Context, pod *corev1.Pod, order crr.Stop) error {
	began := time.Now()
	found, err := e.processes.Find(ctx, first(order.ID))
	if errors.Is(err, signal.ErrNotFound) {
		return nil // it has ended; the pod's status will say so
	}
	if err != nil {
		return fmt.Errorf("stop container %s: %w", order.Container, err)
	}
	grace := order.Grace
	if order.PreStop != nil && grace > 0 {
		if err := e.preStop(ctx, pod, order); err != nil {
			e.logger.Warn("preStop hook failed", "container", order.Container, "err", err)
			e.warn("FailedPreStopHook", fmt.Sprintf("container %s: %v", order.Container, err))
		}
		grace = max(grace-time.Since(began), minGrace)
	}
	if grace > 0 {
		if gone, err := e.signal(ctx, found[0], syscall.SIGTERM, grace); gone || err != nil {
			return wrap(order.Container, err)
		}
	}
	gone, err := e.signal(ctx, found[0], syscall.SIGKILL, killPatience)
	if err == nil && !gone {
		err = errors.New("it runs on after KILL")
	}
	return wrap(order.Container, err)
}

func wrap(container string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stop container %s: %w", container, err)
}

// signal sends a signal and waits until the process has ended, for at most so long.
func (e *executor) signal(ctx context.Context, p signal.Process, sig syscall.Signal, patience time.Duration) (gone bool, err error) {
	if err := e.processes.Send(p, sig); errors.Is(err, signal.ErrGone) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-deadline.C:
			return false, nil
		case <-ticker.C:
			if errors.Is(e.processes.Check(p), signal.ErrGone) {
				return true, nil
			}
		}
	}
}

// preStop runs the hook as far as that is possible from here, for no longer than the grace period.
func (e *executor) preStop(ctx context.Context, pod *corev1.Pod, order crr.Stop) error {
	ctx, cancel := context.WithTimeout(ctx, order.Grace)
	defer cancel()
	switch hook := order.PreStop; {
	case hook.HTTPGet != nil:
		return e.httpHook(ctx, pod, order)
	case hook.Sleep != nil:
		timer := time.NewTimer(time.Duration(hook.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return errors.New("cut off at the end of the grace period")
		}
	default:
		return errors.New("only httpGet and sleep can be run without a container runtime")
	}
}

// httpHook calls the pod itself; a host in the hook is refused, as by the daemon.
func (e *executor) httpHook(ctx context.Context, pod *corev1.Pod, order crr.Stop) error {
	hook := order.PreStop.HTTPGet
	host := cmp.Or(pod.Status.PodIP, "127.0.0.1")
	if hook.Host != "" && hook.Host != host {
		return errors.New("httpGet host is not the pod's IP")
	}
	port, err := hookPort(hook.Port, pod, order.Container)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(cmp.Or(hook.Scheme, corev1.URISchemeHTTP)))
	address := scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/" + strings.TrimPrefix(hook.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	for _, h := range hook.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
	}
	response, err := e.hooks.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return nil
}

func hookPort(port intstr.IntOrString, pod *corev1.Pod, container string) (int, error) {
	if n := port.IntValue(); n >= 1 && n <= 65535 {
		return n, nil
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, p := range c.Ports {
			if c.Name == container && p.Name == port.StrVal {
				return int(p.ContainerPort), nil
			}
		}
	}
	return 0, errors.New("httpGet port is neither a number from 1 to 65535 nor a port of the container")
}

// newHookClient follows no redirect and, like kubelet, does not verify the pod's certificate.
func newHookClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a pod's own certificate has no name to verify
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
