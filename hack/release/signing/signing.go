// Package signing signs the files of a release with a key, and checks signatures: plain ones, which cosign verify-blob and
// openssl check, and DSSE envelopes.
package signing

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

// Signer signs with one key.
type Signer struct{ signer signature.Signer }

// NewSigner reads a private key in PEM: PKCS #8, or encrypted as `cosign generate-key-pair` makes it, with the password.
func NewSigner(path string, password []byte) (*Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc(password))
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	signer, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	return &Signer{signer}, nil
}

// Sign returns the signature of the content, in base64.
func (s *Signer) Sign(content []byte) ([]byte, error) {
	signed, err := s.signer.SignMessage(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return append(base64.StdEncoding.AppendEncode(nil, signed), '\n'), nil
}

// Envelope returns a DSSE envelope with the content and its signature.
func (s *Signer) Envelope(content []byte, payloadType string) ([]byte, error) {
	envelope, err := dsse.WrapSigner(s.signer, payloadType).SignMessage(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return append(envelope, '\n'), nil
}

// PublicKey in PEM.
func (s *Signer) PublicKey() ([]byte, error) {
	key, err := s.signer.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	return cryptoutils.MarshalPublicKeyToPEM(key)
}

// Verifier checks signatures of one key.
type Verifier struct{ verifier signature.Verifier }

// NewVerifier reads a public key in PEM.
func NewVerifier(path string) (*Verifier, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read public key: %w", err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", path, err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", path, err)
	}
	return &Verifier{verifier}, nil
}

// Verify checks a signature that Sign has made.
func (v *Verifier) Verify(content, signed []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(signed)))
	if err != nil {
		return fmt.Errorf("read signature: %w", err)
	}
	return v.verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(content))
}

// Open checks an envelope and returns what is in it.
func (v *Verifier) Open(envelope []byte, payloadType string) ([]byte, error) {
	var payload []byte
	wrapped := dsse.WrapVerifier(v.verifier, dsse.WithExpectedPayloadType(payloadType), dsse.WithDecodedPayload(&payload))
	if err := wrapped.VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return nil, err
	}
	return payload, nil
}
