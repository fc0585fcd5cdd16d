package payload

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// ParseKey reads a public key in PEM, "PUBLIC KEY": ECDSA or Ed25519.
func ParseKey(text string) (crypto.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) > 0 {
		return nil, errors.New("public key: want one PEM block of type PUBLIC KEY")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	switch key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	}
	return nil, fmt.Errorf("public key: %T, want ECDSA or Ed25519", key)
}

// ErrSignature means that none of the configured keys has signed the content.
var ErrSignature = errors.New("signature")

// CheckSignature checks that one of the keys has signed the content with this SHA-256, given in hexadecimal. An ECDSA
// signature is in ASN.1, as "cosign sign-blob" and "openssl dgst -sha256 -sign" make it. An Ed25519 signature is of the
// digest's 32 bytes, because a download is hashed while it is received and not kept in memory.
func CheckSignature(keys []crypto.PublicKey, sum string, signature []byte) error {
	digest, err := hex.DecodeString(sum)
	if err != nil {
		return err
	}
	if len(signature) == 0 {
		return fmt.Errorf("%w: none is given", ErrSignature)
	}
	for _, key := range keys {
		switch key := key.(type) {
		case *ecdsa.PublicKey:
			if ecdsa.VerifyASN1(key, digest, signature) {
				return nil
			}
		case ed25519.PublicKey:
			if ed25519.Verify(key, digest, signature) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: by none of the known keys", ErrSignature)
}
