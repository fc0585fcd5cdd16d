package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
		"named version": {object: `{"metadata":{"annotations":{"refit.dev/content-version":"r7"}},"data":{"a":"1"}}`,
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

// Whoever may change the object is trusted; that two triggers, or two contents, are told apart decides what is removed.
func TestTriggersAreToldApart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config         Config
		resource, name string
	}{
		"ConfigMap": {Config{ConfigMap: "web"}, "configmaps", "configmaps shop/web"},
		"Secret":    {Config{Secret: "web"}, "secrets", "secrets shop/web"},
		"volume":    {Config{Directory: "/etc/web"}, "configmaps", "/etc/web"},
	} {
		if ref := tt.config.Reference("shop"); ref.Resource != tt.resource || ref.Namespace != "shop" || (ref.Name == "") != (name == "volume") {
			t.Errorf("%s: %+v", name, ref)
		}
		if got := tt.config.Name("shop"); got != tt.name {
			t.Errorf("%s: %q, want %q", name, got, tt.name)
		}
	}
	of := func(files map[string]string, version string, more ...string) string {
		c := content{version: version, files: map[string][]byte{"a": []byte("1")}}
		for i := 0; i < len(more); i += 2 {
			c.files[more[i]] = []byte(more[i+1])
		}
		request := Config{Files: files}.request("trigger", c)
		if !request.Trusted || request.Trigger != "trigger" {
			t.Errorf("%+v", request)
		}
		return request.TriggerDigest
	}
	seen := map[string]string{}
	for name, digest := range map[string]string{
		"the content": of(nil, ""), "another content": of(nil, "", "a", "2"), "a file more": of(nil, "", "b", "1"),
		"another path": of(map[string]string{"a": "b"}, ""), "another version": of(nil, "v2"),
	} {
		if other, ok := seen[digest]; ok {
			t.Errorf("%s is as %s", name, other)
		}
		seen[digest] = name
	}
	if of(map[string]string{"a": "a"}, "", "b", "1") != of(nil, "") {
		t.Error("a key that is no file counts")
	}
}

func TestTriggersAreChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config Config
		valid  bool
	}{
		"ConfigMap":            {Config{ConfigMap: "a"}, true},
		"Secret":               {Config{Secret: "a"}, true},
		"volume":               {Config{Directory: "/a"}, true},
		"none":                 {Config{}, false},
		"two":                  {Config{ConfigMap: "a", Secret: "a"}, false},
		"two, and a volume":    {Config{Secret: "a", Directory: "/a"}, false},
		"keys of two files":    {Config{ConfigMap: "a", Files: map[string]string{"a": "x", "b": "y"}}, true},
		"two keys of one file": {Config{ConfigMap: "a", Files: map[string]string{"a": "x", "b": "x"}}, false},
	} {
		if err := tt.config.Validate(); (err == nil) != tt.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mounted volume has its files below ..data, and in the folder links to them.
func TestFilesOfAVolume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name string, size int) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() map[string]int {
		files, err := readVolume(dir)
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int{}
		for name, b := range files {
			sizes[name] = len(b)
		}
		return sizes
	}
	put("plain", 1)
	put("folder/inner", 1)
	put("..hidden", 1)
	if diff := cmp.Diff(map[string]int{"plain": 1}, read()); diff != "" {
		t.Errorf("a folder (-want +got):\n%s", diff)
	}
	put("..2026/a", 2)
	if err := os.Symlink("..2026", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 2}, read()); diff != "" {
		t.Errorf("a mounted volume (-want +got):\n%s", diff)
	}
	put("..2026/b", 8<<20-2)
	if got := read(); got["b"] != 8<<20-2 {
		t.Errorf("%v", got)
	}
	put("..2026/c", 1)
	if _, err := readVolume(dir); err == nil {
		t.Error("more than 8 MiB are read")
	}
}

// A folder is replaced by another one of its name, such as by "mv" or by git-sync, which replaces a link. The files that come after that are
// followed too.
func TestFolderThatIsReplacedIsFollowed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	put := func(folder, name string) {
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, name), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put(dir, "a")
	trigger := New(Config{Directory: dir}, Deps{Logger: slog.New(slog.DiscardHandler)})
	changes := make(chan content, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { trigger.followDirectory(ctx, changes) })
	defer following.Wait()
	defer cancel()
	until := func(name string) {
		t.Helper()
		for {
			select {
			case c := <-changes:
				if c.files[name] != nil {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s is not offered", name)
			}
		}
	}
	until("a")
	put(dir+".new", "b")
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Rename(dir+".new", dir)); err != nil {
		t.Fatal(err)
	}
	until("b")
	put(dir, "c")
	until("c")
}
