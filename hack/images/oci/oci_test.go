package oci_test

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/refit-project/refit/hack/images/oci"
)

var created = time.Unix(1_700_000_000, 0).UTC()

func TestLayer(t *testing.T) {
	t.Parallel()
	layer, err := oci.Layer([]oci.File{
		{Path: "/usr/bin/tool", Mode: 0o755, Content: []byte("first")},
		{Path: "usr/bin/tool", Mode: 0o755, Content: []byte("second")},
		{Path: "bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}, created)
	if err != nil {
		t.Fatal(err)
	}
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name, Link string
		Mode       int64
		Content    string
	}
	var got []entry
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(created) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s: dated %s, owner %d %q", header.Name, header.ModTime, header.Uid, header.Uname)
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{header.Name, header.Linkname, header.Mode, string(body)})
	}
	want := []entry{
		{"bin", "usr/bin", 0o777, ""},
		{"tmp/", "", 0o1777, ""},
		{"usr/", "", 0o755, ""},
		{"usr/bin/", "", 0o755, ""},
		{"usr/bin/tool", "", 0o755, "second"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestLayerRefusesDevices(t *testing.T) {
	t.Parallel()
	if _, err := oci.Layer([]oci.File{{Path: "null", Mode: fs.ModeDevice}}, created); err == nil {
		t.Error("a device went into a layer")
	}
}

func image(t *testing.T, platform string) v1.Image {
	t.Helper()
	layer, err := oci.Layer([]oci.File{{Path: "tool", Mode: 0o755, Content: []byte(platform)}}, created)
	if err != nil {
		t.Fatal(err)
	}
	image, err := oci.Image(platform, v1.Config{Entrypoint: []string{"/tool"}, User: "65532"}, created, layer)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestWriteAndPush(t *testing.T) {
	t.Parallel()
	index, err := oci.Index(image(t, "linux/amd64"), image(t, "linux/arm64"))
	if err != nil {
		t.Fatal(err)
	}
	var archives [2][]byte
	path := filepath.Join(t.TempDir(), "tool.tar")
	for i := range archives {
		if err := oci.Write(path, "ghcr.io/refit-project/tool:v1", index, created); err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if string(archives[0]) != string(archives[1]) {
		t.Error("the same image gave two archives")
	}
	address := startRegistry(t)
	pushed, err := oci.Push(path, address)
	if err != nil {
		t.Fatal(err)
	}
	want := address + "/refit-project/tool:v1"
	if diff := cmp.Diff([]string{want}, pushed); diff != "" {
		t.Errorf("pushed (-want +got):\n%s", diff)
	}
	reference, err := name.ParseReference(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}} {
		pulled, err := remote.Image(reference, remote.WithPlatform(platform))
		if err != nil {
			t.Fatal(err)
		}
		file, err := pulled.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if file.Architecture != platform.Architecture || file.Config.User != "65532" || !file.Created.Equal(created) {
			t.Errorf("%s: got %s, user %s, created %s", platform, file.Architecture, file.Config.User, file.Created)
		}
	}
}

func TestPushTakesWhatDockerSaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tool.tar")
	tag, err := name.NewTag("busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, tag, image(t, "linux/amd64")); err != nil {
		t.Fatal(err)
	}
	address := startRegistry(t)
	pushed, err := oci.Push(path, address)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{address + "/library/busybox:1"}, pushed); diff != "" {
		t.Errorf("pushed (-want +got):\n%s", diff)
	}
}

func TestPushRefuses(t *testing.T) {
	t.Parallel()
	write := func(entries map[string]string) string {
		path := filepath.Join(t.TempDir(), "x.tar")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		writer := tar.NewWriter(file)
		for name, content := range entries {
			if err := writer.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(writer, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(writer.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, entries := range map[string]map[string]string{
		"nothing in it":        {},
		"a way out":            {"../../escape": "x"},
		"a layout of no image": {"oci-layout": `{"imageLayoutVersion":"1.0.0"}`, "index.json": `{"schemaVersion":2,"manifests":[]}`},
	} {
		if pushed, err := oci.Push(write(entries), "127.0.0.1:1"); err == nil {
			t.Errorf("%s: pushed %v", name, pushed)
		}
	}
}
