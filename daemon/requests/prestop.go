package requests

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/kubelet"
)

// maxHookBody is what is read of an HTTP hook's answer before the connection is dropped.
const maxHookBody = 10 << 10

// preStop runs the hook of a container, for no longer than the grace period.
func (w *Worker) preStop(ctx context.Context, request *crr.Request, pod *corev1.Pod, stop crr.Stop) error {
	ctx, cancel := context.WithTimeout(ctx, stop.Grace)
	defer cancel()
	hook := stop.PreStop
	switch {
	case hook.Exec != nil:
		result, err := w.runtime.ExecSync(ctx, stop.ID.ID, hook.Exec.Command, stop.Grace)
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("exit code %d: %s", result.ExitCode, clip(cmp.Or(result.Stderr, result.Stdout)))
		}
		return err
	case hook.HTTPGet != nil:
		return w.httpHook(ctx, request, pod, stop)
	case hook.Sleep != nil:
		if pause(ctx, time.Duration(hook.Sleep.Seconds)*time.Second) != nil {
			return errors.New("cut off at the end of the grace period")
		}
		return nil
	default:
		return errors.New("it has no handler that can be run")
	}
}

// httpHook calls the container at the pod's IP. A host in the hook is refused: the daemon must not be steered
// to other hosts by whoever may write a pod (KEP-4940).
func (w *Worker) httpHook(ctx context.Context, request *crr.Request, pod *corev1.Pod, stop crr.Stop) error {
	hook := stop.PreStop.HTTPGet
	host, err := w.podIP(ctx, pod)
	if err != nil {
		return err
	}
	if hook.Host != "" && hook.Host != host {
		return fmt.Errorf("httpGet host %q is not the pod's IP", clip(hook.Host))
	}
	port, err := hookPort(hook.Port, request, stop.Container)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(cmp.Or(hook.Scheme, corev1.URISchemeHTTP)))
	address := fmt.Sprintf("%s://%s/%s", scheme, net.JoinHostPort(host, strconv.Itoa(port)), strings.TrimPrefix(hook.Path, "/"))
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("make request to %s: %w", clip(address), err)
	}
	for _, header := range hook.HTTPHeaders {
		call.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			call.Host = header.Value
		}
	}
	response, err := w.hooks.Do(call)
	if err != nil {
		return fmt.Errorf("call hook: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, maxHookBody); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return nil
}

// podIP is the sandbox's, else what the pod's status says, as for a pod in the node's network.
func (w *Worker) podIP(ctx context.Context, pod *corev1.Pod) (string, error) {
	ip, err := w.runtime.SandboxIP(ctx, kubelet.RuntimePodUID(pod))
	if err == nil && ip != "" {
		return ip, nil
	}
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP, nil
	}
	return "", errors.Join(errors.New("the pod has no IP"), err)
}

func hookPort(port intstr.IntOrString, request *crr.Request, container string) (int, error) {
	if number := port.IntValue(); port.Type == intstr.Int || number > 0 {
		if number < 1 || number > 65535 {
			return 0, fmt.Errorf("port %d: want 1 to 65535", number)
		}
		return number, nil
	}
	for _, c := range request.Spec.Containers {
		if c.Name != container {
			continue
		}
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return int(p.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("port %q: the container has no port of that name", clip(port.StrVal))
}

// newHookClient calls pods directly, through no proxy, follows no redirect and, like kubelet, does not verify
// the pod's certificate.
func newHookClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a pod's own certificate has no name to verify
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// clip bounds foreign text on its way to Events and logs.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(s, "�")
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// pause returns ctx's error if ctx ends before d has passed.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
