// Package sbom writes the software bill of materials of a Go program, and of an image with one, as SPDX 2.3: the modules
// that the compiler has recorded in the program, as `go version -m` prints them.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	license     = "Apache-2.0"
	source      = "https://github.com/refit-project/refit"
)

// Subject is what a document is about.
type Subject struct {
	// Name of the program or image, and its platform as linux/amd64.
	Name, Platform string
	// Version of the release.
	Version string
	// Binary is the path of the program.
	Binary string
	// Image is the digest of the image's manifest for the platform, as sha256:...; empty: the document is about the program.
	Image string
	// Created dates the document.
	Created time.Time
}

// Document returns the SPDX document as JSON. The same program gives the same bytes.
func Document(subject Subject) ([]byte, error) {
	content, err := os.ReadFile(subject.Binary)
	if err != nil {
		return nil, fmt.Errorf("SBOM of %s: %w", subject.Name, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("SBOM of %s: read its build information: %w", subject.Name, err)
	}
	sum := sha256.Sum256(content)
	program := program(subject, info, hex.EncodeToString(sum[:]))
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: subject.Name + " " + subject.Version + " " + subject.Platform,
		CreationInfo: &v2_3.CreationInfo{
			Created:  subject.Created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "refit-hack-release"}, {CreatorType: "Organization", Creator: "The Refit authors"}},
		},
	}
	root, digest := program, hex.EncodeToString(sum[:])
	if subject.Image != "" {
		root, digest = image(subject), strings.TrimPrefix(subject.Image, "sha256:")
		document.Packages = append(document.Packages, root)
		relate(document, root, common.TypeRelationshipContains, program)
	}
	document.DocumentNamespace = source + "/spdx/" + subject.Name + "/" + digest
	document.Packages = append(document.Packages, program)
	for _, module := range append(info.Deps, &debug.Module{Path: "stdlib", Version: info.GoVersion}) {
		of := modulePackage(module)
		document.Packages = append(document.Packages, of)
		relate(document, program, common.TypeRelationshipDependsOn, of)
	}
	document.Relationships = append([]*v2_3.Relationship{{
		RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", string(root.PackageSPDXIdentifier)),
		Relationship: common.TypeRelationshipDescribe,
	}}, document.Relationships...)
	var out bytes.Buffer
	if err := json.Write(document, &out, json.Indent(" "), json.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("SBOM of %s: %w", subject.Name, err)
	}
	return out.Bytes(), nil
}

func relate(document *v2_3.Document, from *v2_3.Package, relationship string, to *v2_3.Package) {
	document.Relationships = append(document.Relationships, &v2_3.Relationship{
		RefA:         common.MakeDocElementID("", string(from.PackageSPDXIdentifier)),
		RefB:         common.MakeDocElementID("", string(to.PackageSPDXIdentifier)),
		Relationship: relationship,
	})
}

func program(subject Subject, info *debug.BuildInfo, sum string) *v2_3.Package {
	of := newPackage("Program", path.Base(info.Path), subject.Version, "pkg:golang/"+info.Main.Path+"@"+subject.Version+"#"+strings.TrimPrefix(info.Path, info.Main.Path+"/"))
	of.PrimaryPackagePurpose = "APPLICATION"
	of.PackageDownloadLocation, of.PackageLicenseDeclared = source, license
	of.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	return of
}

func image(subject Subject) *v2_3.Package {
	arch := path.Base(subject.Platform)
	of := newPackage("Image", subject.Name, subject.Version, "pkg:oci/"+subject.Name+"@"+strings.Replace(subject.Image, ":", "%3A", 1)+"?arch="+arch+"&tag="+subject.Version)
	of.PrimaryPackagePurpose = "CONTAINER"
	of.PackageLicenseDeclared = license
	of.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: strings.TrimPrefix(subject.Image, "sha256:")}}
	return of
}

func modulePackage(module *debug.Module) *v2_3.Package {
	name, version := module.Path, module.Version
	if module.Replace != nil && !strings.HasPrefix(module.Replace.Path, ".") {
		name, version = module.Replace.Path, module.Replace.Version
	}
	of := newPackage("Module", name, version, "pkg:golang/"+name+"@"+version)
	of.PrimaryPackagePurpose = "LIBRARY"
	return of
}

var notOfAnIdentifier = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func newPackage(kind, name, version, purl string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: name, PackageVersion: version,
		PackageSPDXIdentifier:   common.ElementID(notOfAnIdentifier.ReplaceAllString(kind+"-"+name+"-"+version, "-")),
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl}},
	}
}
