// Package baseimage makes the images a cluster starts with out of unpacked Debian packages: busybox, nginx
// and the sandbox. They behave like the ones of the same name that everybody knows; they are not those.
package baseimage

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/oci"
	"github.com/refit-project/refit/test/cluster/config"
)

// Sources are where the programs come from.
type Sources struct {
	// Busybox is the path of a static busybox and Applets are the names it answers to.
	Busybox string
	Applets []string
	// Nginx is the tree of package nginx with its libraries.
	Nginx string
	// Pause is the path of the sandbox's program.
	Pause string
	// Platform is what the programs run on, as "linux/amd64".
	Platform string
}

// Named is an image and the full name by which a pod asks for it.
type Named struct {
	Name  string
	Image v1.Image
}

// The same program under two tags and two digests, for tests that change a pod's image. The image says in
// this file which one it is.
const tagFile = "etc/image-tag"

var (
	busyboxTags = []string{"1.35", "1.36", "latest"}
	nginxTags   = []string{"1.22", "1.23", "latest"}
	epoch       = time.Unix(0, 0).UTC()
)

// Build makes all images.
func Build(sources Sources) ([]Named, error) {
	busybox, err := oci.Layer(busyboxFiles(sources), epoch)
	if err != nil {
		return nil, fmt.Errorf("image busybox: %w", err)
	}
	nginxFiles, err := nginxFiles(sources.Nginx)
	if err != nil {
		return nil, fmt.Errorf("image nginx: %w", err)
	}
	nginx, err := oci.Layer(nginxFiles, epoch)
	if err != nil {
		return nil, fmt.Errorf("image nginx: %w", err)
	}
	pause, err := oci.Layer([]oci.File{{Path: "pause", Mode: 0o755, Source: sources.Pause}}, epoch)
	if err != nil {
		return nil, fmt.Errorf("image pause: %w", err)
	}
	image, err := oci.Image(sources.Platform, v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, epoch, pause)
	if err != nil {
		return nil, fmt.Errorf("image pause: %w", err)
	}
	images := []Named{{config.SandboxImage, image}}

	environment := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	busyboxImages, err := tagged("docker.io/library/busybox", busyboxTags, sources.Platform,
		v1.Config{Cmd: []string{"sh"}, Env: environment}, busybox)
	if err != nil {
		return nil, err
	}
	nginxImages, err := tagged("docker.io/library/nginx", nginxTags, sources.Platform, v1.Config{
		Cmd:          []string{"nginx", "-g", "daemon off;"},
		Env:          environment,
		ExposedPorts: map[string]struct{}{"80/tcp": {}},
		StopSignal:   "SIGQUIT",
	}, busybox, nginx)
	if err != nil {
		return nil, err
	}
	return append(append(images, busyboxImages...), nginxImages...), nil
}

// tagged makes one image for each tag, "latest" being the same as the one before it.
func tagged(repository string, tags []string, platform string, config v1.Config, layers ...v1.Layer) ([]Named, error) {
	var images []Named
	for _, tag := range tags {
		if tag == "latest" {
			images = append(images, Named{repository + ":" + tag, images[len(images)-1].Image})
			continue
		}
		mark, err := oci.Layer([]oci.File{{Path: tagFile, Mode: 0o644, Content: []byte(tag + "\n")}}, epoch)
		if err != nil {
			return nil, fmt.Errorf("image %s:%s: %w", repository, tag, err)
		}
		all := append(append([]v1.Layer{}, layers...), mark)
		image, err := oci.Image(platform, config, epoch, all...)
		if err != nil {
			return nil, fmt.Errorf("image %s:%s: %w", repository, tag, err)
		}
		images = append(images, Named{repository + ":" + tag, image})
	}
	return images, nil
}

func busyboxFiles(sources Sources) []oci.File {
	link := func(path, target string) oci.File {
		return oci.File{Path: path, Mode: fs.ModeSymlink | 0o777, Link: target}
	}
	text := func(path, content string) oci.File {
		return oci.File{Path: path, Mode: 0o644, Content: []byte(content)}
	}
	dir := func(path string, mode fs.FileMode) oci.File {
		return oci.File{Path: path, Mode: fs.ModeDir | mode}
	}
	files := []oci.File{
		link("bin", "usr/bin"), link("sbin", "usr/sbin"), link("lib", "usr/lib"), link("lib64", "usr/lib64"),
		dir("usr/bin", 0o755), dir("usr/sbin", 0o755), dir("usr/lib", 0o755), dir("usr/lib64", 0o755),
		dir("root", 0o700), dir("run", 0o755), dir("tmp", fs.ModeSticky|0o777), dir("var/tmp", fs.ModeSticky|0o777),
		link("var/run", "/run"), dir("home", 0o755),
		text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/bin/false\n"+
			"nobody:x:65534:65534:nobody:/home:/bin/false\n"),
		text("etc/group", "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n"),
		{Path: "usr/bin/busybox", Mode: 0o755, Source: sources.Busybox},
	}
	for _, applet := range sources.Applets {
		if applet != "busybox" {
			files = append(files, link("usr/bin/"+path.Base(applet), "busybox"))
		}
	}
	return files
}

const (
	nginxConf = `user www-data;
worker_processes auto;
pid /run/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log /dev/stdout;
    sendfile on;
    keepalive_timeout 65;
    include /etc/nginx/conf.d/*.conf;
}
`
	nginxServer = `server {
    listen 80;
    server_name localhost;
    location / {
        root /usr/share/nginx/html;
        index index.html index.htm;
    }
}
`
)

func nginxFiles(tree string) ([]oci.File, error) {
	files, err := oci.Tree(tree, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	var kept []oci.File
	for _, file := range files {
		file.Path = mergedUsr(file.Path)
		if !file.Mode.IsDir() && ofNginx(file.Path) {
			kept = append(kept, file)
		}
	}
	if _, err := os.Stat(filepath.Join(tree, "usr/sbin/nginx")); err != nil {
		return nil, err
	}
	text := func(path, content string) oci.File {
		return oci.File{Path: path, Mode: 0o644, Content: []byte(content)}
	}
	return append(kept,
		text("etc/nginx/nginx.conf", nginxConf),
		text("etc/nginx/conf.d/default.conf", nginxServer),
		oci.File{Path: "var/lib/nginx", Mode: fs.ModeDir | 0o755},
		oci.File{Path: "var/log/nginx", Mode: fs.ModeDir | 0o755},
		oci.File{Path: "var/log/nginx/access.log", Mode: fs.ModeSymlink | 0o777, Link: "/dev/stdout"},
		oci.File{Path: "var/log/nginx/error.log", Mode: fs.ModeSymlink | 0o777, Link: "/dev/stderr"},
	), nil
}

// mergedUsr moves what older packages have in /lib, /bin and /sbin to where these links point.
func mergedUsr(name string) string {
	switch first, _, _ := strings.Cut(name, "/"); first {
	case "bin", "sbin", "lib", "lib64":
		return "usr/" + name
	}
	return name
}

// ofNginx says whether a file of the packages is needed to serve: the program, its configuration and pages,
// and the libraries themselves without what they load on demand.
func ofNginx(name string) bool {
	switch {
	case name == "usr/sbin/nginx", name == "etc/nginx/mime.types":
		return true
	case strings.HasPrefix(name, "usr/share/nginx/html/"), strings.HasPrefix(name, "usr/lib64/"), strings.HasPrefix(name, "usr/lib/ld-"):
		return true
	}
	// usr/lib/x86_64-linux-gnu/libc.so.6
	return strings.HasPrefix(name, "usr/lib/") && strings.Count(name, "/") == 3 &&
		strings.Contains(path.Base(name), ".so")
}
