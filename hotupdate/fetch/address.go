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

// guard decides which addresses may be fetched from.
type guard struct {
	hosts    []string
	networks []netip.Prefix
	// own returns the addresses of this pod.
	own func() ([]net.Addr, error)
}

// checkURL checks the scheme and the host name, of the first request and of every redirect.
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

// hostMatches compares a host name with a pattern: a name, or "*.example.org" for all names with this suffix.
func hostMatches(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

// control has the signature of net.Dialer.Control. It checks the address that is dialled, after name resolution. A name
// that resolves to another address the second time is therefore checked again.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: address %q", ErrRefused, address)
	}
	return g.checkAddress(ap.Addr())
}

// isOwn reports whether an address belongs to this pod. If the addresses cannot be listed, it returns false.
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
	if g.isOwn(a) { // an address of the pod reaches all listeners on all addresses, as loopback does
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
