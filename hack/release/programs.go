package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/build"
	"github.com/refit-project/refit/hack/images/oci"
	"github.com/refit-project/refit/hack/release/sbom"
)

// nodes builds the programs that run in containers, and their images.
func (r *release) nodes(ctx context.Context) error {
	programs, err := build.Programs(r.Root)
	if err != nil {
		return err
	}
	for _, program := range programs {
		index, err := r.builder.Image(ctx, program, r.only(nodePlatforms))
		if err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		built := image{name: program.Name, index: index, digest: digest}
		file := program.Name + "_" + r.Version + "_image.tar"
		if err := oci.Write(filepath.Join(r.Out, file), r.Repository+"/"+program.Name+":"+r.Version, index, r.source.Created); err != nil {
			return err
		}
		if err := r.add(file); err != nil {
			return err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		for _, entry := range manifest.Manifests {
			sbom, err := r.describe(program, entry)
			if err != nil {
				return err
			}
			built.sboms = append(built.sboms, sbom)
		}
		r.images = append(r.images, built)
		for _, platform := range r.only(nodePlatforms) {
			if err := r.program(program, platform); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe writes the bill of materials of an image for one platform and returns the name of the file.
func (r *release) describe(program build.Program, entry v1.Descriptor) (string, error) {
	platform := entry.Platform.OS + "/" + entry.Platform.Architecture
	document, err := sbom.Document(sbom.Subject{
		Name: program.Name, Platform: platform, Version: r.Version, Binary: r.builder.Binary(program, platform),
		Image: entry.Digest.String(), Created: r.source.Created,
	})
	if err != nil {
		return "", err
	}
	file := r.named(program.Name, platform) + "_image.spdx.json"
	return file, r.write(file, document)
}

// named is the beginning of the names of files about a program.
func (r *release) named(program, platform string) string {
	return program + "_" + r.Version + "_" + strings.ReplaceAll(platform, "/", "_")
}

// program writes the archive of a program that has been built, with more files, and its bill of materials.
func (r *release) program(program build.Program, platform string, more ...entry) error {
	binary := r.builder.Binary(program, platform)
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	entries := append([]entry{{filepath.Base(binary), 0o755, content}, {"LICENSE", 0o644, r.license}}, more...)
	packed, err := archive(entries, r.source.Created)
	if err != nil {
		return err
	}
	if err := r.write(r.named(program.Name, platform)+".tar.gz", packed); err != nil {
		return err
	}
	document, err := sbom.Document(sbom.Subject{Name: program.Name, Platform: platform, Version: r.Version, Binary: binary, Created: r.source.Created})
	if err != nil {
		return err
	}
	return r.write(r.named(program.Name, platform)+".spdx.json", document)
}

// maxKubectl is how many bytes kubectl-refit may have: 60 MB, which its users download.
const maxKubectl = 60_000_000

// kubectl builds kubectl-refit.
func (r *release) kubectl(ctx context.Context) error {
	const complete = "kubectl_complete-refit"
	program := build.Program{Name: "kubectl-refit", Dir: filepath.Join(r.Root, "cmd", "kubectl-refit")}
	completion, err := os.ReadFile(filepath.Join(program.Dir, complete))
	if err != nil {
		return err
	}
	for _, platform := range r.only(userPlatforms) {
		binary, err := r.builder.Compile(ctx, program, platform)
		if err != nil {
			return err
		}
		if err := checkSize(binary, r.kubectlBytes); err != nil {
			return fmt.Errorf("%s for %s: %w", program.Name, platform, err)
		}
		if err := r.program(program, platform, entry{complete, 0o755, completion}); err != nil {
			return err
		}
	}
	return nil
}

// checkSize returns an error if a file has more than most bytes.
func checkSize(path string, most int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read its size: %w", err)
	}
	if info.Size() > most {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", info.Size(), most)
	}
	return nil
}

// chart packages the chart, with the digests of its images. Helm is a dependency of another module.
func (r *release) chart(ctx context.Context) error {
	argv := []string{"go", "run", "./archive", "-version=" + r.Version, "-created=" + r.seconds(), "-out=" + r.Out, "-repository=" + r.Repository}
	for _, image := range r.images {
		argv = append(argv, "-digest="+image.name+"="+image.digest.String())
	}
	written, err := output(ctx, filepath.Join(r.Root, "hack", "chart"), argv...)
	if err != nil {
		return err
	}
	r.chartFile = filepath.Base(written)
	return r.add(r.chartFile)
}

// seconds is the date of the commit, in seconds since 1970.
func (r *release) seconds() string { return strconv.FormatInt(r.source.Created.Unix(), 10) }

// krew fills in the manifest of kubectl-refit for krew.
func (r *release) krew(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "deploy", "krew", "refit.yaml.tmpl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	manifest, err := template.New(krewFile).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return err
	}
	type platform struct{ OS, Arch string }
	data := struct {
		Version   string
		Platforms []platform
		SHA256    map[string]string
	}{Version: r.Version, SHA256: r.sums}
	for _, name := range r.only(userPlatforms) {
		data.Platforms = append(data.Platforms, platform{path.Dir(name), path.Base(name)})
	}
	var out bytes.Buffer
	if err := manifest.Execute(&out, data); err != nil {
		return err
	}
	return r.write(krewFile, out.Bytes())
}

// changes writes what is new.
func (r *release) changes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := changes(string(changelog), r.Version)
	if err != nil {
		return fmt.Errorf("find changes: %w", err)
	}
	return r.write(changesFile, []byte(section))
}
