package hotupdate_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
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
