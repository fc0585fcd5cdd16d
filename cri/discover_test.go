package cri_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/cri"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		make     func(t *testing.T, root string)
		explicit string // under the root
		want     string // under the root; "": ErrNoSocket
		says     string
	}{
		"nothing":           {says: "containerd/containerd.sock"},
		"mounted directory": {make: sockets("containerd.sock"), want: "containerd.sock"},
		"mounted run":       {make: sockets("crio/crio.sock"), want: "crio/crio.sock"},
		"order of kruise":   {make: sockets("cri-dockerd.sock", "crio/crio.sock", "containerd/containerd.sock"), want: "containerd/containerd.sock"},
		"explicit":          {make: sockets("containerd.sock", "my.sock"), explicit: "my.sock", want: "my.sock"},
		"explicit missing":  {make: sockets("containerd.sock"), explicit: "my.sock", says: "my.sock"},
		"directory in its place": {
			make: func(t *testing.T, root string) { mkdir(t, filepath.Join(root, "containerd.sock")) },
			says: "not a socket",
		},
		"passes over what is no socket": {
			make: func(t *testing.T, root string) {
				mkdir(t, filepath.Join(root, "containerd.sock"))
				sockets("crio.sock")(t, root)
			},
			want: "crio.sock",
		},
		"link": {
			make: func(t *testing.T, root string) {
				sockets("real.sock")(t, root)
				link(t, "real.sock", filepath.Join(root, "crio.sock"))
			},
			want: "crio.sock",
		},
		"link to nowhere": {
			make: func(t *testing.T, root string) { link(t, "/no/such.sock", filepath.Join(root, "crio.sock")) },
			says: "link to /no/such.sock, which is not there",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if tt.make != nil {
				tt.make(t, root)
			}
			for _, prefix := range []string{"", "unix://"} {
				explicit := ""
				if tt.explicit != "" {
					explicit = prefix + filepath.Join(root, tt.explicit)
				}
				got, err := cri.Discover(explicit, []string{filepath.Join(root, "none"), root})
				if tt.want == "" {
					if !errors.Is(err, cri.ErrNoSocket) || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("Discover(%q) = %q, %v; want ErrNoSocket saying %q", explicit, got, err, tt.says)
					}
				} else if want := "unix://" + filepath.Join(root, tt.want); err != nil || got != want {
					t.Errorf("Discover(%q) = %q, %v; want %q", explicit, got, err, want)
				}
			}
		})
	}
}

func TestDiscoverMalformed(t *testing.T) {
	t.Parallel()
	for _, explicit := range []string{"containerd.sock", "tcp://127.0.0.1:10", "npipe://./pipe/x", "unix://run/x"} {
		got, err := cri.Discover(explicit, nil)
		if err == nil || errors.Is(err, cri.ErrNoSocket) {
			t.Errorf("Discover(%q) = %q, %v; want it refused as malformed", explicit, got, err)
		}
	}
}

// The manifests and the docs name these places.
func TestDefaultRoots(t *testing.T) {
	t.Parallel()
	_, err := cri.Discover("", cri.DefaultRoots())
	if err == nil {
		t.Skip("this machine has a runtime")
	}
	for _, path := range []string{
		"/hostvarrun/containerd.sock", "/hostvarrun/cri-dockerd/cri-dockerd.sock",
		"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock",
		"/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock",
	} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not tried", path)
		}
	}
}

// New accepts every endpoint that Discover returns.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"", "/a", "unix:///a", "unix://", "unix://a", "/a\x00", "unix://unix:///a", "/a?b#c%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		client, err := cri.New(cri.Config{Endpoint: endpoint})
		if err == nil {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
		_, found := cri.Discover(endpoint, nil)
		if wellFormed := found == nil || errors.Is(found, cri.ErrNoSocket); endpoint != "" && wellFormed != (err == nil) {
			t.Errorf("%q: New says %v, Discover says %v", endpoint, err, found)
		}
	})
}

func sockets(names ...string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		for _, name := range names {
			mkdir(t, filepath.Dir(filepath.Join(root, name)))
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}
