package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

var (
	start = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	names = []string{"hook.refit-system.svc", "hook.refit-system"}
)

func issue(t *testing.T, stored State, now time.Time) (State, string) {
	t.Helper()
	state, reason, err := Issue(stored, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return state, reason
}

// trusts reports whether an API server with the bundle accepts the serving certificate.
func trusts(t *testing.T, bundle []byte, serving KeyPair, now time.Time) bool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("no authority in the bundle")
	}
	certificate, _, err := parse(serving)
	if err != nil {
		t.Fatal(err)
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: names[0]})
	return err == nil
}

func TestCertificatesAreRenewedWhenNeededAndOnlyThen(t *testing.T) {
	t.Parallel()
	first, _ := issue(t, State{}, start)
	other, _ := issue(t, State{}, start)
	for name, tc := range map[string]struct {
		edit               func(*State)
		after              time.Duration
		reason             string // part of it; empty if nothing is renewed
		authority, serving bool   // are new
	}{
		"nothing stored":                                  {edit: func(s *State) { *s = State{} }, reason: "new certificate authority: there is none yet", authority: true, serving: true},
		"unchanged":                                       {},
		"unchanged for months":                            {after: 244 * day},
		"less than 120 days left":                         {after: 245*day + time.Hour, reason: "new serving certificate: the certificate is valid from", serving: true},
		"expired":                                         {after: 400 * day, reason: "new serving certificate", serving: true},
		"authority lasts years":                           {after: 7 * 365 * day, reason: "new serving certificate", serving: true},
		"authority close to its end":                      {after: 8*365*day + time.Hour, reason: "new certificate authority: the certificate is valid from", authority: true, serving: true},
		"authority replaced":                              {edit: func(s *State) { s.Authority = other.Authority }, reason: "not one of the authority", serving: true},
		"certificate of another name":                     {edit: func(s *State) { s.Serving = otherName(t, *s) }, reason: "is for", serving: true},
		"key of another certificate":                      {edit: func(s *State) { s.Serving.Key = other.Serving.Key }, reason: "not the ECDSA key", serving: true},
		"key of another authority":                        {edit: func(s *State) { s.Authority.Key = other.Authority.Key }, reason: "not the ECDSA key", authority: true, serving: true},
		"certificate without PEM":                         {edit: func(s *State) { s.Serving.Certificate = []byte("x") }, reason: "not PEM", serving: true},
		"clock set back by a day":                         {after: -day, reason: "new certificate authority", authority: true, serving: true},
		"not an authority":                                {edit: func(s *State) { s.Authority = s.Serving }, reason: "not one of an authority", authority: true, serving: true},
		"RSA authority":                                   {edit: func(s *State) { s.Authority = rsaAuthority(t) }, reason: "not the ECDSA key", authority: true, serving: true},
		"bundle with an authority that is no longer used": {edit: func(s *State) { s.Bundle = append(bytes.Clone(s.Bundle), other.Bundle...) }, reason: "no longer used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := first
			if tc.edit != nil {
				tc.edit(&stored)
			}
			now := start.Add(tc.after)
			got, reason := issue(t, stored, now)
			if (reason == "") != (tc.reason == "") || !strings.Contains(reason, tc.reason) {
				t.Errorf("reason %q, want %q", reason, tc.reason)
			}
			if renewed := !bytes.Equal(got.Authority.Certificate, stored.Authority.Certificate); renewed != tc.authority {
				t.Errorf("new authority: %t", renewed)
			}
			if renewed := !bytes.Equal(got.Serving.Certificate, stored.Serving.Certificate); renewed != tc.serving {
				t.Errorf("new serving certificate: %t", renewed)
			}
			if !trusts(t, got.Bundle, got.Serving, now) {
				t.Error("the API server does not trust the certificate")
			}
			if again, reason := issue(t, got, now); !bytes.Equal(again.Serving.Certificate, got.Serving.Certificate) || strings.Contains(reason, "new") {
				t.Errorf("renewed again: %s", reason)
			}
		})
	}
}

// Replicas change over in their own time: between the writes of a renewal any of them may use the old certificate.
func TestReplacedAuthorityIsTrustedBesideTheNewOne(t *testing.T) {
	t.Parallel()
	before, _ := issue(t, State{}, start)
	now := start.Add(200 * day)
	lost := before
	lost.Authority = KeyPair{}
	after, _ := issue(t, lost, now)
	if !trusts(t, after.Bundle, before.Serving, now) || !trusts(t, after.Bundle, after.Serving, now) {
		t.Error("the bundle lacks the old authority or the new one")
	}
	// Stopped after the authority was stored and before the certificate was: the bundle of the Secret is the old one.
	stopped := State{Authority: after.Authority, Serving: before.Serving, Bundle: before.Bundle}
	again, _ := issue(t, stopped, now)
	if !trusts(t, again.Bundle, before.Serving, now) || !trusts(t, again.Bundle, again.Serving, now) {
		t.Error("after an interruption the bundle lacks the old authority or the new one")
	}
	next, reason := issue(t, after, now.Add(7*day))
	if trusts(t, next.Bundle, before.Serving, now.Add(7*day)) || reason == "" {
		t.Error("the old authority is trusted for ever")
	}
}

func otherName(t *testing.T, s State) KeyPair {
	t.Helper()
	authority, key, err := parse(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := newServing(authority, key, []string{"other.svc"}, start)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func rsaAuthority(t *testing.T) KeyPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rsa"}, IsCA: true, BasicConstraintsValid: true, NotBefore: start, NotAfter: start.Add(9 * 365 * day),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return KeyPair{Certificate: encodeCertificate(der), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})}
}

func TestKeysAreECDSA(t *testing.T) {
	t.Parallel()
	state, _ := issue(t, State{}, start)
	for name, pair := range map[string]KeyPair{"authority": state.Authority, "serving": state.Serving} {
		certificate, _, err := parse(pair)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := certificate.PublicKey.(*ecdsa.PublicKey); !ok {
			t.Errorf("%s: %T", name, certificate.PublicKey)
		}
	}
}

// FuzzIssue: no stored state causes a panic, and the result is trusted.
func FuzzIssue(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		pair := KeyPair{Certificate: certificate, Key: key}
		state, _ := issue(t, State{Authority: pair, Serving: pair, Bundle: certificate}, start)
		if !trusts(t, state.Bundle, state.Serving, start) {
			t.Error("not trusted")
		}
	})
}
