package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// metadata are addresses outside of the link-local ranges at which clouds serve credentials without authentication.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS over IPv6: instance, Pod Identity, DNS and time
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud over IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's WireServer
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud, classic
}

// translated are IPv6 ranges whose last 32 bits are an IPv4 address (RFC 6052, RFC 4291).
var translated = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("::/96"),
}

// guard decides where may be fetched from.
type guard struct {
	hosts    []string
	networks []netip.Prefix
	// own are the addresses of this pod.
	own func() ([]net.Addr, error)
}

// checkURL looks at scheme and host name, of the first request and of every redirect.
func (g guard) checkURL(u, before *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: scheme %q", ErrRefused, u.Scheme)
	}
	if before != nil && before.Scheme == "https" && u.Scheme == "http" {
		return fmt.Errorf("%w: redirect from https to http", ErrRefused)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if len(g.hosts) == 0 || slices.ContainsFunc(g.hosts, func(p string) bool { return hostMatches(p, host) }) {
		return nil
	}
	return fmt.Errorf("%w: host %q is not on the list", ErrRefused, host)
}

// hostMatches knows names, and "*.example.org" for whatever ends so.
func hostMatches(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

// control has the form of net.Dialer.Control: it sees the address that is really dialled, after every
// resolution, so that a name which resolves differently the second time gains nothing.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: address %q", ErrRefused, address)
	}
	return g.checkAddress(ap.Addr())
}

// isOwn reports whether an address is one of this pod's. If they cannot be listed, none is known.
func (g guard) isOwn(a netip.Addr) bool {
	addresses, err := g.own()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addresses, func(own net.Addr) bool {
		prefix, err := netip.ParsePrefix(own.String())
		return err == nil && prefix.Addr().WithZone("").Unmap() == a
	})
}

func (g guard) checkAddress(a netip.Addr) error {
	a = a.WithZone("").Unmap()
	for _, p := range translated {
		if b := a.AsSlice(); a.Is6() && p.Contains(a) && !a.IsLoopback() && !a.IsUnspecified() {
			a = netip.AddrFrom4([4]byte(b[12:]))
			break
		}
	}
	if g.isOwn(a) { // reaches what listens on all addresses, as loopback does
		if a.Is4() {
			a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		} else if !a.IsLinkLocalUnicast() {
			a = netip.IPv6Loopback()
		}
	}
	switch {
	case a.IsLinkLocalUnicast(), slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) }):
		return fmt.Errorf("%w: %s is a link-local or metadata address", ErrRefused, a)
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%w: %s is not a host name", ErrRefused, a)
	case len(g.networks) == 0 && a.IsLoopback():
		return fmt.Errorf("%w: %s is this pod itself", ErrRefused, a)
	case len(g.networks) > 0 && !slices.ContainsFunc(g.networks, func(p netip.Prefix) bool { return p.Contains(a) }):
		return fmt.Errorf("%w: %s is not in an allowed network", ErrRefused, a)
	}
	return nil
}
