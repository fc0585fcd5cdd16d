package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/refit-project/refit/probe"
)

type sent struct{ times int }

func (s *sent) Probe(context.Context) probe.Outcome {
	s.times++
	return probe.Outcome{State: probe.Succeeded}
}

func TestOnlyAddressesOfThePodAreProbed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		address string
		host    bool
		known   []string
		fault   error
		want    int // of two probes
	}{
		"its address":                    {address: "10.0.0.1", known: []string{"10.0.0.1"}, want: 2},
		"its second address":             {address: "fd00::1", known: []string{"10.0.0.1", "fd00::1"}, want: 2},
		"another address":                {address: "10.0.0.9", known: []string{"10.0.0.1"}},
		"another, in the host network":   {address: "10.0.0.9", host: true, known: []string{"10.0.0.1"}},
		"in the host network":            {address: "192.0.2.1", host: true, want: 2},
		"in the host network by nothing": {address: "192.0.2.1"},
		"the runtime does not answer":    {address: "10.0.0.1", known: []string{"10.0.0.1"}, fault: errors.New("away"), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var known []netip.Addr
			for _, text := range tc.known {
				known = append(known, netip.MustParseAddr(text))
			}
			calls, prober := 0, &sent{}
			a := &addressed{
				Prober: prober, address: netip.MustParseAddr(tc.address), host: tc.host, log: slog.New(slog.DiscardHandler),
				of: func(context.Context) ([]netip.Addr, error) {
					if calls++; calls == 1 && tc.fault != nil {
						return nil, tc.fault
					}
					return known, nil
				},
			}
			results := 0
			for range 2 {
				if a.Probe(t.Context()).State != "" {
					results++
				}
			}
			if prober.times != tc.want || results != tc.want {
				t.Errorf("%d probes and %d results, want %d", prober.times, results, tc.want)
			}
			if tc.want == 2 && calls != 1 {
				t.Errorf("asked %d times for the addresses, want once", calls)
			}
		})
	}
}
