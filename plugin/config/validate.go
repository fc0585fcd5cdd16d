package config

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/refit-project/refit/internal/foreign"
)

// DefaultAddress is the default address of the server.
const DefaultAddress = "127.0.0.1:5000"

// Validate returns all errors at once.
func (f *File) Validate() error {
	var errs []error
	for i, p := range f.Plugins {
		if p.Name == "" {
			errs = append(errs, fmt.Errorf("plugins[%d]: no name", i))
		}
	}
	for name, quantity := range f.Resources {
		switch strings.ToLower(name) {
		case "cpu", "memory":
		default:
			errs = append(errs, fmt.Errorf("resources: %q: want CPU or Memory", name))
		}
		if _, err := foreign.Quantity(quantity); err != nil {
			errs = append(errs, fmt.Errorf("resources: %s: %w", name, err))
		}
	}
	if c := f.SelfTestCondition; c != "" && c != "off" {
		if err := CheckStorage([]Storage{{InKube: &InKube{ConditionType: c}}}); err != nil {
			errs = append(errs, fmt.Errorf("selfTestCondition: %w", errors.Unwrap(err))) // there is no storageConfig
		}
	}
	errs = append(errs, f.Server.validate())
	return errors.Join(errs...)
}

// Listen returns the server's address.
func (s Server) Listen() string {
	if s.Address == "" {
		return DefaultAddress
	}
	return s.Address
}

func (s Server) validate() error {
	var errs []error
	if (s.TLS.CertFile == "") != (s.TLS.KeyFile == "") {
		errs = append(errs, errors.New("server.tls: certFile and keyFile go together"))
	}
	if s.TLS.ClientCAFile != "" && s.TLS.CertFile == "" {
		errs = append(errs, errors.New("server.tls: clientCAFile needs certFile and keyFile"))
	}
	host, _, err := net.SplitHostPort(s.Listen())
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("server.address: %w", err))...)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && s.TokenFile == "" && s.TLS.ClientCAFile == "" {
		errs = append(errs, fmt.Errorf("server.address %s can be reached by others: give tokenFile or tls.clientCAFile", s.Listen()))
	}
	return errors.Join(errs...)
}
