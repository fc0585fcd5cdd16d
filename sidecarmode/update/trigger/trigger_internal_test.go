package trigger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A ConfigMap's text, its bytes, and a Secret's base64 all become the files that they stand for.
func TestContentOfTriggers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object  string
		files   map[string]string // of the trigger
		want    map[string]string
		version string
	}{
		"ConfigMap": {object: `{"data":{"a":"SGk="},"binaryData":{"b":"SGk="}}`, want: map[string]string{"a": "SGk=", "b": "Hi"}, version: "sha256-"},
		"Secret":    {object: `{"type":"Opaque","data":{"key":"SGk="}}`, want: map[string]string{"key": "Hi"}, version: "sha256-"},
		"named version": {object: `{"metadata":{"annotations":{"refit.dev/version":"r7"}},"data":{"a":"1"}}`,
			want: map[string]string{"a": "1"}, version: "r7"},
		"keys mapped to paths": {object: `{"data":{"a":"1","b":"2"}}`, files: map[string]string{"a": "conf/app.conf"},
			want: map[string]string{"conf/app.conf": "1"}, version: "sha256-"},
	}
	for name, tt := range tests {
		var o object
		if err := json.Unmarshal([]byte(tt.object), &o); err != nil {
			t.Fatal(err)
		}
		request := Config{Files: tt.files}.request("trigger", o.content())
		got := map[string]string{}
		for _, s := range request.Sources {
			got[s.Name] = string(s.Data)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || !strings.HasPrefix(request.Version, tt.version) || !request.Keep || request.Validate() != nil {
			t.Errorf("%s: version %s (-want +got):\n%s", name, request.Version, diff)
		}
	}
	if r := (Config{Files: map[string]string{"none": "x"}}).request("trigger", content{files: map[string][]byte{"a": nil}}); len(r.Sources) > 0 {
		t.Error("a key that is not mapped is a file")
	}
	same, again := Config{}, Config{}
	c := content{files: map[string][]byte{"a": []byte("1"), "b": []byte("2")}}
	first := same.request("trigger", c)
	second := again.request("trigger", c)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same content is another request:\n%s", diff)
	}
}
