package hotupdate_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/payload"
)

// Integrity: what arrives is compared with the digest in the request and with the one that the server announces.
func TestIntegrity(t *testing.T) {
	t.Parallel()
	encoded := func(content string) string {
		b := sha256.Sum256([]byte(content))
		return base64.StdEncoding.EncodeToString(b[:])
	}
	tests := map[string]struct {
		asked  string
		header map[string]string
		want   error
	}{
		"no digest at all":       {},
		"asked for":              {asked: sum("new")},
		"asked for, upper case":  {asked: strings.ToUpper(sum("new"))},
		"another is asked for":   {asked: sum("other"), want: hotupdate.ErrDigest},
		"announced":              {header: map[string]string{"Repr-Digest": "sha-512=:AA==:, sha-256=:" + encoded("new") + ":"}},
		"another is announced":   {header: map[string]string{"Repr-Digest": "sha-256=:" + encoded("other") + ":"}, want: hotupdate.ErrDigest},
		"of the content":         {header: map[string]string{"Content-Digest": "sha-256=:" + encoded("other") + ":"}, want: hotupdate.ErrDigest},
		"the older header":       {header: map[string]string{"Digest": "SHA-256=" + encoded("new")}},
		"another, older header":  {header: map[string]string{"Digest": "MD5=x,SHA-256=" + encoded("other")}, want: hotupdate.ErrDigest},
		"only unknown":           {header: map[string]string{"Repr-Digest": "md5=:AA==:"}},
		"nonsense":               {header: map[string]string{"Repr-Digest": "sha-256=:x:"}, want: hotupdate.ErrFetch},
		"asked for or announced": {asked: sum("new"), header: map[string]string{"Digest": "sha-256=" + encoded("other")}, want: hotupdate.ErrDigest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for key, value := range tt.header {
					w.Header().Set(key, value)
				}
				fmt.Fprint(w, "new")
			})
			b := newBench(t, nil, nil)
			b.apply(t, inline("v1", files{"a": "old"}))
			_, err := b.Apply(t.Context(), hotupdate.Request{Version: "v2", Sources: []hotupdate.Source{{URL: url, Name: "a", SHA256: tt.asked}}})
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("err = %v, want %v", err, tt.want)
			}
			want := files{"a": "new"}
			if tt.want != nil {
				want["a"] = "old"
			}
			b.check(t, want)
		})
	}
}

// Integrity, signatures: with keys, nothing is unpacked or put in place that none of them has signed.
func TestIntegrityBySignature(t *testing.T) {
	t.Parallel()
	first, second := newSigner(t), newSigner(t)
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := []crypto.PublicKey{parsed(t, first.Public()), parsed(t, edPublic)}
	archive := tarGz(t, tarFile("a", "new"))
	tests := map[string]struct {
		source  hotupdate.Source
		trusted bool
		fails   bool
	}{
		"ECDSA":                   {source: hotupdate.Source{Name: "a", Data: []byte("new"), Signature: signed(t, first, "new")}},
		"Ed25519":                 {source: hotupdate.Source{Name: "a", Data: []byte("new"), Signature: ed25519.Sign(edPrivate, digestOf("new"))}},
		"an archive":              {source: hotupdate.Source{Data: archive, Format: hotupdate.TarGz, Signature: signed(t, first, string(archive))}},
		"trusted without any":     {source: hotupdate.Source{Name: "a", Data: []byte("new")}, trusted: true},
		"none":                    {source: hotupdate.Source{Name: "a", Data: []byte("new")}, fails: true},
		"none, but a digest":      {source: hotupdate.Source{Name: "a", Data: []byte("new"), SHA256: sum("new")}, fails: true},
		"of something else":       {source: hotupdate.Source{Name: "a", Data: []byte("new"), Signature: signed(t, first, "old")}, fails: true},
		"by a stranger":           {source: hotupdate.Source{Name: "a", Data: []byte("new"), Signature: signed(t, second, "new")}, fails: true},
		"nonsense":                {source: hotupdate.Source{Name: "a", Data: []byte("new"), Signature: []byte("x")}, fails: true},
		"an archive by nobody":    {source: hotupdate.Source{Data: archive, Format: hotupdate.TarGz}, fails: true},
		"of what the archive has": {source: hotupdate.Source{Data: archive, Format: hotupdate.TarGz, Signature: signed(t, first, "new")}, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, func(c *hotupdate.Config) { c.Keys = keys })
			old := inline("v1", files{"a": "old"})
			old.Trusted = true
			b.apply(t, old)
			_, err := b.Apply(t.Context(), hotupdate.Request{Version: "v2", Trusted: tt.trusted, Sources: []hotupdate.Source{tt.source}})
			if errors.Is(err, hotupdate.ErrSignature) != tt.fails || (err != nil) != tt.fails {
				t.Fatalf("err = %v", err)
			}
			want := files{"a": "new"}
			if tt.fails {
				want["a"] = "old"
			}
			b.check(t, want)
			b.checkClean(t)
		})
	}
}

func TestParseKeyRefusesOthers(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no PEM": "key", "a certificate": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
		"damaged": "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n", "RSA": pemOf(t, rsaKey.Public()),
		"two": pemOf(t, newSigner(t).Public()) + pemOf(t, newSigner(t).Public()),
	} {
		if key, err := payload.ParseKey(text); err == nil {
			t.Errorf("%s: %v", name, key)
		}
	}
}

func newSigner(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func digestOf(content string) []byte {
	b := sha256.Sum256([]byte(content))
	return b[:]
}

func signed(t *testing.T, key *ecdsa.PrivateKey, content string) []byte {
	t.Helper()
	b, err := ecdsa.SignASN1(rand.Reader, key, digestOf(content))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pemOf(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func parsed(t *testing.T, key crypto.PublicKey) crypto.PublicKey {
	t.Helper()
	again, err := payload.ParseKey(pemOf(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return again
}
