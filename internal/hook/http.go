package hook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// maxBody is how much of a response is read before the connection is closed, as by kubelet.
	maxBody = 10 << 10
	// maxHeader bounds the header of a response.
	maxHeader = 64 << 10
)

// get calls the container at its pod's IP. Another host is refused: a user who may write a pod could otherwise send
// requests from the node's network to any host (KEP-4940).
func (r *Runner) get(ctx context.Context, call Call) error {
	action := call.Handler.HTTPGet
	host, err := r.config.Addresses.PodIP(ctx, call.Pod)
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	if action.Host != "" && action.Host != host {
		return fmt.Errorf("httpGet: host %q is not the pod's IP", clip(action.Host))
	}
	port, err := portOf(action.Port, call.Pod, call.Container)
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	request, err := newRequest(ctx, action, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("httpGet: %w", timedOut(ctx, err))
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, maxBody); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("httpGet: read answer: %w", timedOut(ctx, err))
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("httpGet: HTTP status %d", response.StatusCode)
	}
	return nil
}

// newRequest always uses the given address. Of the hook's path only the path itself and a query count.
func newRequest(ctx context.Context, action *corev1.HTTPGetAction, address string) (*http.Request, error) {
	to := &url.URL{Path: action.Path}
	if parsed, err := url.Parse(action.Path); err == nil && parsed.Host == "" {
		to = &url.URL{Path: parsed.Path, RawPath: parsed.RawPath, RawQuery: parsed.RawQuery}
	}
	to.Scheme, to.Host = strings.ToLower(string(cmp.Or(action.Scheme, corev1.URISchemeHTTP))), address // String adds a slash between
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	return request, nil
}

// timedOut returns ErrTimeout instead of the error that the end of the hook's time has caused.
func timedOut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// portOf returns a port by number, also as text, or by its name in the container.
func portOf(port intstr.IntOrString, pod *corev1.Pod, container string) (int, error) {
	if number := port.IntValue(); port.Type == intstr.Int || number > 0 {
		if number < 1 || number > 65535 {
			return 0, fmt.Errorf("port %d: want 1 to 65535", number)
		}
		return number, nil
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name != container {
			continue
		}
		for _, p := range c.Ports {
			if p.Name == port.StrVal && p.Name != "" {
				return int(p.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("port %q: the container has no port of that name", clip(port.StrVal))
}

// newClient returns a client that calls pods directly, without a proxy, follows no redirect and, like kubelet, does not
// verify the pod's certificate.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a pod's own certificate has no name to verify
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
