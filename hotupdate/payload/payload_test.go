package payload_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/payload"
)

// The name of a file is given by the caller, or by an archive, and must not lead out of the folder.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	element := strings.Repeat("n", 255)
	for name, says := range map[string]string{
		"a": "", "dir/a.b-c_1": "", ".hidden": "", "dir/..a": "", "ü/日本": "", "a b": "",
		element + "/" + element: "", strings.Repeat("a/", 511) + "bc": "",
		"": "no file name", ".": "no file name", "/": "no file name",
		strings.Repeat("a/", 512) + "b": "name of 1025 bytes: more than 1024",
		"d/" + element + "n":            "more than 255 bytes between slashes",
		"a\xff":                         "not UTF-8",
		"a\nb":                          "control characters and backslashes",
		`a\b`:                           "control characters and backslashes",
		"../a":                          "not a plain path", "/etc/passwd": "not a plain path", "a/../b": "not a plain path", "a//b": "not a plain path", "./a": "not a plain path", "a/": "not a plain path",
		"..data": "reserved", "..2026/a": "reserved",
	} {
		err := payload.CheckName(name)
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", name, err, says)
		}
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	t.Parallel()
	if got, want := (payload.Limits{}).WithDefaults(), (payload.Limits{MaxFiles: 10_000, MaxUnpacked: 1 << 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if own := (payload.Limits{MaxFiles: 1, MaxUnpacked: 2}); own.WithDefaults() != own {
		t.Errorf("%+v became %+v", own, own.WithDefaults())
	}
}

func TestReaderEndsWithAnErrorBeyondItsLimit(t *testing.T) {
	t.Parallel()
	for limit, whole := range map[int64]bool{0: false, 4: false, 5: true, 6: true, math.MaxInt64 - 1: true, math.MaxInt64: true} {
		for name, from := range map[string]io.Reader{"at once": strings.NewReader("12345"), "byte by byte": iotest.OneByteReader(strings.NewReader("12345"))} {
			r := payload.LimitReader(from, limit, limit)
			b, err := io.ReadAll(r)
			if whole != (err == nil) || whole && string(b) != "12345" || int64(len(b)) > limit || !whole && !errors.Is(err, payload.ErrTooLarge) {
				t.Errorf("%d, %s: %q, %v", limit, name, b, err)
			}
			if n, again := r.Read(make([]byte, 1)); !whole && (n > 0 || !errors.Is(again, payload.ErrTooLarge)) {
				t.Errorf("%d, %s: read again: %d, %v", limit, name, n, again)
			}
		}
	}
	if n, err := payload.LimitReader(strings.NewReader("1"), 5, 5).Read(nil); n != 0 || err != nil {
		t.Errorf("read nothing: %d, %v", n, err)
	}
}

func TestFaultsOfARequest(t *testing.T) {
	t.Parallel()
	of := func(sources ...payload.Source) payload.Request {
		return payload.Request{Version: "v", Sources: sources}
	}
	data := func(name string) payload.Source { return payload.Source{Name: name, Data: []byte("x")} }
	with := func(change func(*payload.Source)) payload.Request {
		s := data("a")
		change(&s)
		return of(s)
	}
	version := func(v string) payload.Request {
		return payload.Request{Version: v, Sources: []payload.Source{data("a")}}
	}
	source := func(u string) payload.Request { return of(payload.Source{URL: u}) }
	mode := func(m fs.FileMode) payload.Request { return with(func(s *payload.Source) { s.Mode = m }) }
	sum := func(text string) payload.Request { return with(func(s *payload.Source) { s.SHA256 = text }) }
	format := func(name string, f payload.Format) payload.Request {
		return with(func(s *payload.Source) { s.Name, s.Format = name, f })
	}
	for name, tt := range map[string]struct {
		r    payload.Request
		says string
	}{
		"a file": {of(data("a")), ""}, "two": {of(data("a"), data("b")), ""}, "a URL": {source("https://h/dir/a?x=1"), ""},
		"nothing of a trigger": {payload.Request{Version: "v", Trigger: "t"}, ""},
		"longest version":      {version(strings.Repeat("v", 256)), ""},
		"no version":           {version(""), "version: want 1 to 256 bytes"}, "longer version": {version(strings.Repeat("v", 257)), "version: "},
		"version with control": {version("a\nb"), "version: "}, "version of no text": {version("\xff"), "version: "},
		"no source": {of(), "no source"}, "twice": {of(data("a"), data("b"), data("a")), "source 2: a is given twice"},
		"archive over a file":  {of(data("a"), payload.Source{Name: "a", Data: []byte("x"), Format: payload.Zip}), ""},
		"file over an archive": {of(payload.Source{Name: "a", Data: []byte("x"), Format: payload.Zip}, data("a")), "source 1: a is given twice"},
		"no name in the URL":   {source("http://h/dir/"), "no file name"}, "no URL": {source("http://a b/"), "cannot be parsed"}, "URL of no text": {source("http://h/\xff"), "cannot be parsed"},
		"ftp": {source("ftp://u:secret@h/a?key=secret"), `URL "ftp://h/a": want http or https`}, "no host": {source("http:///a"), "want http or https and a host"}, "port alone": {source("http://:80/a"), "and a host"},
		"URL and data": {with(func(s *payload.Source) { s.URL = "http://h/a" }), "exactly one of URL and data"},
		"digest":       {sum(strings.Repeat("0a", 32)), ""}, "short digest": {sum(strings.Repeat("0a", 31)), "64 hexadecimal digits"}, "digest of other letters": {sum(strings.Repeat("0x", 32)), "64 hexadecimal digits"},
		"mode": {mode(0o400), ""}, "mode of all": {mode(0o777), ""}, "unreadable": {mode(0o377), "mode 0377: want permission bits, readable"}, "special bits": {mode(0o644 | fs.ModeSetuid), "want permission bits"},
		"archive of the folder": {format("", payload.TarGz), ""}, "archive of a folder": {format("dir", payload.Zip), ""}, "archive elsewhere": {format("../dir", payload.Zip), "not a plain path"},
		"format": {format("a", "rar"), `format "rar": want tar.gz, zip or none`},
	} {
		err := tt.r.Validate()
		if (tt.says == "") != (err == nil) || err != nil && (!errors.Is(err, payload.ErrInvalid) || !strings.Contains(err.Error(), tt.says)) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
	if err := (payload.Request{Sources: []payload.Source{{Name: "..a", Data: []byte("x")}, {Format: "x", Data: []byte("x")}}}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three faults at once: %v", err)
	}
}

// Accepted sources stay, except for those that the request replaces.
func TestRequestOverOthers(t *testing.T) {
	t.Parallel()
	zip := payload.Source{Name: "b", Format: payload.Zip, Data: []byte("new")}
	own := payload.Request{Version: "v", Sources: []payload.Source{{URL: "http://h/dir/a"}, zip}}
	below := []payload.Source{{Name: "a", Data: []byte("old")}, {Name: "b", Data: []byte("old")}, {Name: "a", Format: payload.Zip}, {Name: "c"}}
	got := own.OnTopOf(below)
	want := []payload.Source{below[1], below[2], below[3], own.Sources[0], zip}
	if diff := cmp.Diff(want, got.Sources); diff != "" || !got.Layered || !got.KeepUnrequested || len(own.Sources) != 2 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	if !own.Brings("a") || own.Brings("b") || own.Brings("c") {
		t.Error("brings another file than it does")
	}
}

func TestURLThatCanBeShown(t *testing.T) {
	t.Parallel()
	for source, tt := range map[string]struct {
		shown, withQuery          string
		stripped, strippedOfQuery bool
	}{
		"https://h/a":         {"https://h/a", "https://h/a", false, false},
		"https://h/a?k=1#f":   {"https://h/a", "https://h/a?k=1", true, false},
		"https://u:p@h/a":     {"https://h/a", "https://h/a", true, true},
		"https://u:p@h/a?k=1": {"https://h/a", "https://h/a?k=1", true, true},
		"http://a b/":         {"", "", true, true},
	} {
		shown, stripped := payload.Public(source, false)
		withQuery, strippedOfQuery := payload.Public(source, true)
		if shown != tt.shown || stripped != tt.stripped || withQuery != tt.withQuery || strippedOfQuery != tt.strippedOfQuery {
			t.Errorf("%s: %s %t, with its query %s %t", source, shown, stripped, withQuery, strippedOfQuery)
		}
	}
	if payload.Address("") != "" || payload.Address("http://h/a") == payload.Address("http://h/b") || strings.Contains(payload.Address("http://h/a"), "h/a") {
		t.Error("two URLs have the same address, or the address shows the URL")
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("content"))
	byCurve, err := curve.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	byEdwards := ed25519.Sign(edwards, sum[:])
	other := sha256.Sum256([]byte("other"))
	both := []crypto.PublicKey{&curve.PublicKey, public}
	for name, tt := range map[string]struct {
		keys      []crypto.PublicKey
		sum       []byte
		signature []byte
		ok        bool
	}{
		"ECDSA": {both, sum[:], byCurve, true}, "Ed25519": {both, sum[:], byEdwards, true},
		"other content, ECDSA": {both, other[:], byCurve, false}, "other content, Ed25519": {both, other[:], byEdwards, false},
		"another's": {both[1:], sum[:], byCurve, false}, "also another's": {both[:1], sum[:], byEdwards, false},
		"none": {both, sum[:], nil, false}, "no key": {nil, sum[:], byCurve, false}, "cut": {both, sum[:], byEdwards[1:], false},
	} {
		if err := payload.CheckSignature(tt.keys, hex.EncodeToString(tt.sum), tt.signature); tt.ok != (err == nil) || err != nil && !errors.Is(err, payload.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := payload.CheckSignature(both, "x", byCurve); err == nil {
		t.Error("no digest")
	}
	inPEM := func(kind string, key any) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		inPEM("PUBLIC KEY", public): "", inPEM("PUBLIC KEY", &curve.PublicKey): "",
		"": "one PEM block", inPEM("EC PUBLIC KEY", public): "one PEM block", inPEM("PUBLIC KEY", public) + "x": "one PEM block",
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: bytes.Repeat([]byte{1}, 9)})): "public key: ",
		inPEM("PUBLIC KEY", &rsaKey.PublicKey):                                                        "want ECDSA or Ed25519",
	} {
		key, err := payload.ParseKey(text)
		if (says == "") != (err == nil) || err != nil && (key != nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
