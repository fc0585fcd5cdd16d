package config

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultAddress of the server.
const DefaultAddress = "127.0.0.1:5000"

// Validate reports all faults at once.
func (f *File) Validate() error {
	var faults []error
	for i, p := range f.Plugins {
		if p.Name == "" {
			faults = append(faults, fmt.Errorf("plugins[%d]: no name", i))
		}
	}
	for name, quantity := range f.Resources {
		switch strings.ToLower(name) {
		case "cpu", "memory":
		default:
			faults = append(faults, fmt.Errorf("resources: %q: want CPU or Memory", name))
		}
		if _, err := resource.ParseQuantity(quantity); err != nil {
			faults = append(faults, fmt.Errorf("resources: %s: %q: %w", name, quantity, err))
		}
	}
	if c := f.SelfTestCondition; c != "" && c != "off" {
		if err := CheckStorage([]Storage{{InKube: &InKube{ConditionType: c}}}); err != nil {
			faults = append(faults, fmt.Errorf("selfTestCondition: %w", errors.Unwrap(err))) // there is no storageConfig
		}
	}
	faults = append(faults, f.Server.validate())
	return errors.Join(faults...)
}

// Listen is the server's address.
func (s Server) Listen() string {
	if s.Address == "" {
		return DefaultAddress
	}
	return s.Address
}

func (s Server) validate() error {
	var faults []error
	if (s.TLS.CertFile == "") != (s.TLS.KeyFile == "") {
		faults = append(faults, errors.New("server.tls: certFile and keyFile go together"))
	}
	if s.TLS.ClientCAFile != "" && s.TLS.CertFile == "" {
		faults = append(faults, errors.New("server.tls: clientCAFile needs certFile and keyFile"))
	}
	host, _, err := net.SplitHostPort(s.Listen())
	if err != nil {
		return errors.Join(append(faults, fmt.Errorf("server.address: %w", err))...)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && s.TokenFile == "" && s.TLS.ClientCAFile == "" {
		faults = append(faults, fmt.Errorf("server.address %s can be reached by others: give tokenFile or tls.clientCAFile", s.Listen()))
	}
	return errors.Join(faults...)
}
