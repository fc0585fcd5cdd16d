package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

const (
	day = 24 * time.Hour
	// authorityLifetime is long, because every new CA certificate has to be distributed to the API server.
	authorityLifetime = 10 * 365 * day
	// authorityRenewal is how long before its expiry a CA certificate is replaced: longer than the validity of the
	// certificates that it signs.
	authorityRenewal = 2 * 365 * day
	servingLifetime  = 365 * day
	// servingRenewal leaves months to notice that renewals fail.
	servingRenewal = 120 * day
	// clockSkew is how far other clocks of the cluster may be behind ours.
	clockSkew = time.Hour
)

// KeyPair is a certificate with its private key, in PEM.
type KeyPair struct{ Certificate, Key []byte }

// State is the stored state of the webhooks' certificates.
type State struct {
	Authority KeyPair
	Serving   KeyPair
	// Bundle has the CA certificates that the API server is to trust, in PEM: the present one first, and then the previous
	// one while servers may still use a certificate signed with it.
	Bundle []byte
}

// Issue returns the wanted state at a time, for a server with these DNS names, and what has been renewed. If nothing has to
// be renewed, it returns the stored state and an empty string.
func Issue(stored State, names []string, now time.Time) (State, string, error) {
	authority, key, err := parse(stored.Authority)
	reason := ""
	if err == nil {
		err = checkAuthority(authority, now)
	}
	next := stored
	if err != nil {
		reason = fmt.Sprintf("new certificate authority: %v", err)
		if authority, key, next.Authority, err = newAuthority(now); err != nil {
			return State{}, "", err
		}
	}
	if invalid := checkServing(stored.Serving, authority, names, now); invalid != nil {
		if reason == "" {
			reason = fmt.Sprintf("new serving certificate: %v", invalid)
		}
		if next.Serving, err = newServing(authority, key, names, now); err != nil {
			return State{}, "", err
		}
	}
	next.Bundle = encodeCertificate(authority.Raw)
	if reason != "" {
		next.Bundle = append(next.Bundle, trustedBefore(stored.Bundle, authority, now)...)
	} else if string(next.Bundle) != string(stored.Bundle) {
		reason = "authorities that are no longer used are removed"
	}
	return next, reason, nil
}

// trustedBefore returns the first other CA certificate of a bundle that has not expired.
func trustedBefore(bundle []byte, present *x509.Certificate, now time.Time) []byte {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !certificate.Equal(present) && now.Before(certificate.NotAfter) {
			return encodeCertificate(certificate.Raw)
		}
	}
	return nil
}

var errMissing = errors.New("there is none yet")

// parse parses a key pair. It also checks that certificate and key belong together.
func parse(pair KeyPair) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if len(pair.Certificate) == 0 && len(pair.Key) == 0 {
		return nil, nil, errMissing
	}
	certificateBlock, _ := pem.Decode(pair.Certificate)
	keyBlock, _ := pem.Decode(pair.Key)
	if certificateBlock == nil || keyBlock == nil {
		return nil, nil, errors.New("certificate or key is not PEM")
	}
	certificate, err := x509.ParseCertificate(certificateBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse certificate: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, nil, errors.New("the key is not the ECDSA key of the certificate")
	}
	return certificate, key, nil
}

func checkAuthority(certificate *x509.Certificate, now time.Time) error {
	if !certificate.IsCA {
		return errors.New("the certificate is not one of an authority")
	}
	return checkValidity(certificate, authorityRenewal, now)
}

func checkValidity(certificate *x509.Certificate, renewal time.Duration, now time.Time) error {
	if now.Before(certificate.NotBefore) || !now.Before(certificate.NotAfter.Add(-renewal)) {
		return fmt.Errorf("the certificate is valid from %s to %s", certificate.NotBefore.Format(time.DateOnly), certificate.NotAfter.Format(time.DateOnly))
	}
	return nil
}

func checkServing(pair KeyPair, authority *x509.Certificate, names []string, now time.Time) error {
	certificate, _, err := parse(pair)
	if err != nil {
		return err
	}
	if err := checkValidity(certificate, servingRenewal, now); err != nil {
		return err
	}
	if err := certificate.CheckSignatureFrom(authority); err != nil {
		return fmt.Errorf("the certificate is not one of the authority: %w", err)
	}
	if !slices.Equal(certificate.DNSNames, names) {
		return fmt.Errorf("the certificate is for %q instead of %q", certificate.DNSNames, names)
	}
	return nil
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, KeyPair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "refit-webhooks-ca", Organization: []string{"refit"}},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLifetime),
	}
	return create(template, nil, nil)
}

func newServing(authority *x509.Certificate, authorityKey *ecdsa.PrivateKey, names []string, now time.Time) (KeyPair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0], Organization: []string{"refit"}}, DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(servingLifetime),
	}
	_, _, pair, err := create(template, authority, authorityKey)
	return pair, err
}

// create returns a key and its certificate, signed by the issuer, or self-signed without one.
func create(template, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, KeyPair, error) {
	fail := func(err error) (*x509.Certificate, *ecdsa.PrivateKey, KeyPair, error) {
		return nil, nil, KeyPair{}, fmt.Errorf("make certificate %s: %w", template.Subject.CommonName, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return fail(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return fail(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return certificate, key, KeyPair{
		Certificate: encodeCertificate(der), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
