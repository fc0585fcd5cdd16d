package fetch

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"
)

// The pod's own address reaches listeners on all of its addresses, as loopback does: it is refused unless loopback is
// allowed, even if the network of the pods is allowed.
func TestThePodsOwnAddressIsTreatedLikeLoopback(t *testing.T) {
	t.Parallel()
	own := func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.ParseIP("10.1.2.3"), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("fd00::3"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	tests := map[string]struct {
		address string
		allowed []netip.Prefix
		refused bool
	}{
		"own":                          {"10.1.2.3", nil, true},
		"own, IPv6":                    {"fd00::3", nil, true},
		"own, mapped":                  {"::ffff:10.1.2.3", nil, true},
		"own, network of the pods":     {"10.1.2.3", prefixes("10.0.0.0/8"), true},
		"own, loopback allowed":        {"10.1.2.3", prefixes("127.0.0.0/8"), false},
		"own IPv6, loopback allowed":   {"fd00::3", prefixes("::1/128"), false},
		"loopback":                     {"127.0.0.1", nil, true},
		"loopback, IPv6":               {"::1", nil, true},
		"loopback, mapped":             {"::ffff:127.0.0.1", nil, true},
		"loopback, translated":         {"64:ff9b::7f00:1", nil, true},
		"a neighbour":                  {"10.1.2.4", nil, false},
		"a neighbour, network allowed": {"10.1.2.4", prefixes("10.0.0.0/8"), false},
	}
	for name, tt := range tests {
		err := guard{networks: tt.allowed, own: own}.checkAddress(netip.MustParseAddr(tt.address))
		if errors.Is(err, ErrRefused) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostsOfTheList(t *testing.T) {
	t.Parallel()
	listed := guard{hosts: []string{"*.Example.org", "config"}}
	for address, allowed := range map[string]bool{
		"https://cdn.example.org/a": true, "https://CDN.example.org./a": true, "http://config/a": true, "http://a.b.example.org:8080/": true,
		"https://example.org/a": false, "https://.example.org/a": false, "https://badexample.org/a": false, "http://config.shop/a": false, "http://conf/a": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := listed.checkURL(u, nil); (err == nil) != allowed || !allowed && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want allowed %t", address, err, allowed)
		}
		if err := (guard{}).checkURL(u, nil); err != nil {
			t.Errorf("%s without a list: %v", address, err)
		}
	}
}

func TestSchemesOfRedirects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, next string
		allowed      bool
	}{
		"plain":       {"http", "http", true},
		"to secure":   {"http", "https", true},
		"secure":      {"https", "https", true},
		"from secure": {"https", "http", false},
		"to files":    {"http", "file", false},
	} {
		err := guard{}.checkURL(&url.URL{Scheme: tt.next, Host: "h"}, &url.URL{Scheme: tt.before, Host: "h"})
		if (err == nil) != tt.allowed || !tt.allowed && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Addresses that no configuration allows, and some that look similar.
func TestAddresses(t *testing.T) {
	t.Parallel()
	nobody := func() ([]net.Addr, error) { return nil, errors.New("no addresses") }
	anything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for address, allowed := range map[string]bool{
		"169.254.1.1": false, "fe80::1%eth0": false, "100.100.100.200": false, "100.100.100.201": true, "fd00:ec2::254": false, "fd00:ec3::254": true,
		"0.0.0.0": false, "::": false, "224.0.0.1": false, "255.255.255.255": false, "255.255.255.254": true,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b::808:808": true, "::a9fe:a9fe": false, "::ffff:169.254.1.1": false, "::1": true, "127.0.0.1": true,
	} {
		err := guard{networks: anything, own: nobody}.checkAddress(netip.MustParseAddr(address))
		if (err == nil) != allowed || !allowed && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want allowed %t", address, err, allowed)
		}
	}
	if err := (guard{own: nobody}).control("tcp", "pipe", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("an address that is none: %v", err)
	}
}
