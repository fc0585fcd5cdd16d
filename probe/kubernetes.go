package probe

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Place describes the environment of the container whose probe FromKubernetes converts.
type Place struct {
	// Host is the pod's address.
	Host string
	// Ports are the container's ports, to look up named ports.
	Ports []corev1.ContainerPort
	// Execer runs commands in the container; nil if that is not possible.
	Execer Execer
}

// FromKubernetes converts a probe of the API to a Spec, with Kubernetes' defaults. It refuses a host other than
// place.Host: otherwise a user who may write probes could make this program connect to hosts that the user cannot
// reach.
func FromKubernetes(p *corev1.Probe, place Place) (Spec, error) {
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	spec := Spec{Timing: Timing{
		StartDelay:       seconds(p.InitialDelaySeconds),
		Period:           seconds(p.PeriodSeconds),
		Timeout:          seconds(p.TimeoutSeconds),
		SuccessThreshold: int(p.SuccessThreshold),
		FailureThreshold: int(p.FailureThreshold),
	}.WithDefaults()}
	var err error
	if spec.Prober, err = place.prober(p.ProbeHandler); err != nil {
		return Spec{}, err
	}
	return spec, spec.Validate()
}

func (place Place) prober(h corev1.ProbeHandler) (Prober, error) {
	given := 0
	for _, is := range []bool{h.Exec != nil, h.HTTPGet != nil, h.TCPSocket != nil, h.GRPC != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return nil, errors.New("probe: only one of exec, httpGet, tcpSocket and grpc can be given")
	}
	switch {
	case h.Exec != nil:
		if place.Execer == nil || len(h.Exec.Command) == 0 {
			return nil, errors.New("probe: exec: no command, or no way to run one in the container")
		}
		return Exec{Execer: place.Execer, Command: h.Exec.Command}, nil
	case h.HTTPGet != nil:
		return place.http(h.HTTPGet)
	case h.TCPSocket != nil:
		address, err := place.address(h.TCPSocket.Host, h.TCPSocket.Port)
		return TCP{Address: address}, err
	case h.GRPC != nil:
		address, err := place.address("", intstr.FromInt32(h.GRPC.Port))
		g := &GRPC{Address: address}
		if h.GRPC.Service != nil {
			g.Service = *h.GRPC.Service
		}
		return g, err
	}
	return nil, errors.New("probe: none of exec, httpGet, tcpSocket and grpc is given")
}

func (place Place) http(get *corev1.HTTPGetAction) (Prober, error) {
	address, err := place.address(get.Host, get.Port)
	if err != nil {
		return nil, err
	}
	// The path may contain a query, as in kubelet.
	u, err := url.Parse("/" + strings.TrimLeft(get.Path, "/"))
	if err != nil {
		return nil, fmt.Errorf("probe: path: %w", err)
	}
	u.Scheme, u.Host = "http", address
	if get.Scheme != "" {
		u.Scheme = strings.ToLower(string(get.Scheme))
	}
	header := http.Header{}
	for _, h := range get.HTTPHeaders {
		header.Add(h.Name, h.Value)
	}
	return NewHTTP(HTTPConfig{URL: u.String(), Header: header, SkipTLSVerify: true})
}

func (place Place) address(host string, port intstr.IntOrString) (string, error) {
	if host != "" && host != place.Host {
		return "", fmt.Errorf("probe: host %q: only the pod itself can be probed", host)
	}
	if place.Host == "" { // an empty host would be this machine
		return "", errors.New("probe: the pod has no address")
	}
	number := int(port.IntVal)
	if port.Type == intstr.String {
		number = 0
		if n, err := strconv.Atoi(port.StrVal); err == nil {
			number = n
		}
		for _, p := range place.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number < 1 || number > 65535 {
		return "", fmt.Errorf("probe: port %q: neither a number from 1 to 65535 nor a port of the container", port.String())
	}
	return net.JoinHostPort(place.Host, strconv.Itoa(number)), nil
}
