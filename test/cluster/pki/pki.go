// Package pki makes the certificates and kubeconfig files of a cluster. The keys are for a test cluster
// that nobody outside this machine can reach and live as long as its state folder.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// Authority signs certificates and keeps them as NAME.crt and NAME.key in one folder.
type Authority struct {
	dir         string
	certificate *x509.Certificate
	key         crypto.Signer
}

// Subject is who a certificate is for.
type Subject struct {
	// Name is the user of a client certificate, Groups are that user's groups.
	Name   string
	Groups []string
	// Hosts are the DNS names and IP addresses of a server certificate.
	Hosts []string
}

// Open returns the authority called name in dir, making it when it is not there.
func Open(dir, name string) (*Authority, error) {
	authority, err := read(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		authority, err = create(dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return authority, nil
}

func create(dir, name string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	key, certificate, err := sign(template, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := write(dir, name, certificate, key); err != nil {
		return nil, err
	}
	return read(dir, name)
}

func read(dir, name string) (*Authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("not PEM")
	}
	certificate, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &Authority{dir: dir, certificate: certificate, key: signer}, nil
}

// Issue makes NAME.crt and NAME.key unless they are there.
func (a *Authority) Issue(name string, subject Subject) error {
	if _, err := os.Stat(filepath.Join(a.dir, name+".key")); err == nil {
		return nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.Name, Organization: subject.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range subject.Hosts {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, certificate, err := sign(template, a.certificate, a.key)
	if err == nil {
		err = write(a.dir, name, certificate, key)
	}
	if err != nil {
		return fmt.Errorf("issue certificate %s: %w", name, err)
	}
	return nil
}

// sign makes a key and a certificate for it; without parent the certificate signs itself.
func sign(template, parent *x509.Certificate, signer crypto.Signer) (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	// An hour back, for clocks that are set while the cluster runs.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(validity)
	if parent == nil {
		parent, signer = template, key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return key, certificate, err
}

func write(dir, name string, certificate []byte, key crypto.Signer) error {
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), certPEM, 0o644); err != nil {
		return err
	}
	// The key is written last: Issue takes its presence for the presence of both.
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes})
	return os.WriteFile(filepath.Join(dir, name+".key"), keyPEM, 0o600)
}
