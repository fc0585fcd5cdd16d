package fetch

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// The pod's own address reaches what listens on all of its addresses, as loopback does: it is refused unless loopback
// is allowed, also where the network of the pods is.
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
