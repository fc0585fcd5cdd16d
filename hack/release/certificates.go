package main

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates are Mozilla's CA certificates as Go's module has them: the certificates of the machine would make the images differ from one
// machine to the next. Those that are trusted under a condition only are left out, since a file of PEM cannot have conditions.
func certificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("CA certificates: %w", err)
		}
	}
	return out.Bytes(), nil
}
