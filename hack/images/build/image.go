package build

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/oci"
)

const (
	nonRoot     = "65532:65532"
	certificate = "etc/ssl/certs/ca-certificates.crt"
)

// Image builds a program for every platform and makes one image of it.
func (b *Builder) Image(ctx context.Context, program Program, platforms []string) (v1.ImageIndex, error) {
	var images []v1.Image
	for _, platform := range platforms {
		image, err := b.platformImage(ctx, program, platform)
		if err != nil {
			return nil, fmt.Errorf("image %s for %s: %w", program.Name, platform, err)
		}
		images = append(images, image)
	}
	return oci.Index(images...)
}

func (b *Builder) platformImage(ctx context.Context, program Program, platform string) (v1.Image, error) {
	binary, err := b.Compile(ctx, program, platform)
	if err != nil {
		return nil, err
	}
	base, err := oci.Layer(b.files(), b.Created)
	if err != nil {
		return nil, err
	}
	// A layer of its own: the one below is the same in every image and every version.
	layer, err := oci.Layer([]oci.File{{Path: program.path(), Mode: 0o755, Source: binary}}, b.Created)
	if err != nil {
		return nil, err
	}
	user := nonRoot
	if slices.Contains(b.RootUser, program.Name) {
		user = "0:0"
	}
	labels := map[string]string{
		"org.opencontainers.image.title":    program.Name,
		"org.opencontainers.image.version":  b.Version,
		"org.opencontainers.image.source":   "https://github.com/refit-project/refit",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	maps.Copy(labels, b.Labels)
	return oci.Image(platform, v1.Config{
		Entrypoint: []string{"/" + program.path()}, User: user, WorkingDir: "/", Labels: labels,
	}, b.Created, base, layer)
}

// files are what a static program expects to find beside it.
func (b *Builder) files() []oci.File {
	text := func(path, content string) oci.File {
		return oci.File{Path: path, Mode: 0o644, Content: []byte(content)}
	}
	files := []oci.File{
		text("etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"),
		text("etc/group", "root:x:0:\nnonroot:x:65532:\n"),
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	if len(b.Certificates) > 0 {
		files = append(files, oci.File{Path: certificate, Mode: 0o644, Content: b.Certificates})
	}
	return files
}
