package baseimage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfNginxAreInTheImage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"usr/sbin/nginx":                          true,
		"lib/x86_64-linux-gnu/libc.so.6":          true,
		"usr/lib/x86_64-linux-gnu/libssl.so.3":    true,
		"lib64/ld-linux-x86-64.so.2":              true,
		"lib/ld-linux-aarch64.so.1":               true,
		"usr/share/nginx/html/index.html":         true,
		"usr/lib/x86_64-linux-gnu/gconv/UTF-7.so": false,
		"usr/share/doc/nginx/copyright":           false,
		"etc/nginx/nginx.conf":                    false,
	} {
		if got := ofNginx(mergedUsr(name)); got != want {
			t.Errorf("%s kept: %t, want %t", name, got, want)
		}
	}
}

func TestBuildGivesEachTagItsDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "usr", "sbin", "nginx")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	images, err := Build(Sources{Busybox: program, Applets: []string{"sh"}, Nginx: dir, Pause: program, Platform: "linux/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, image := range images {
		digest, err := image.Image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[image.Name] = digest.String()
	}
	const nginx = "docker.io/library/nginx:"
	if digests[nginx+"1.22"] == digests[nginx+"1.23"] {
		t.Error("both tags are the same image")
	}
	if digests[nginx+"latest"] != digests[nginx+"1.23"] {
		t.Error("latest is not the newest")
	}
	if len(digests) != 7 {
		t.Errorf("%d names, want 7: %v", len(digests), digests)
	}
}
