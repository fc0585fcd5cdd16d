package sbom_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/refit-project/refit/hack/release/sbom"
)

var created = time.Unix(1_700_000_000, 0)

// document is the SBOM of hack/release itself.
func document(t *testing.T, image string) (string, *v2_3.Document) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "release")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	text, err := sbom.Document(sbom.Subject{Name: "tool", Platform: "linux/amd64", Version: "v1.2.3", Binary: binary, Image: image, Created: created})
	if err != nil {
		t.Fatal(err)
	}
	read := &v2_3.Document{}
	if err := json.ReadInto(bytes.NewReader(text), read); err != nil {
		t.Fatal(err)
	}
	return binary, read
}

func TestListsTheModulesThatGoVersionLists(t *testing.T) {
	t.Parallel()
	binary, document := document(t, "")
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		// "dep PATH VERSION SUM", and under it "=> PATH VERSION SUM" if it is replaced by another module.
		fields := strings.Fields(line)
		switch {
		case len(fields) < 3:
		case fields[0] == "dep":
			want = append(want, fields[1]+"@"+fields[2])
		case fields[0] == "=>" && !strings.HasPrefix(fields[1], "."):
			want[len(want)-1] = fields[1] + "@" + fields[2]
		}
	}
	if len(want) < 2 {
		t.Fatalf("go version -m lists %d modules", len(want))
	}
	var got []string
	for _, of := range document.Packages {
		if of.PrimaryPackagePurpose == "LIBRARY" && of.PackageName != "stdlib" {
			got = append(got, of.PackageName+"@"+of.PackageVersion)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-go version +SBOM):\n%s", diff)
	}
}

// Identifiers are unique, and relationships are between packages that are there.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{"program": "", "image": "sha256:" + strings.Repeat("0", 64)} {
		_, document := document(t, image)
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, of := range document.Packages {
			id := string(of.PackageSPDXIdentifier)
			if seen[id] {
				t.Errorf("%s: %s is there twice", name, id)
			}
			seen[id] = true
		}
		described, err := spdxlib.GetDescribedPackageIDs(document)
		if err != nil || len(described) != 1 {
			t.Errorf("%s: describes %v, %v", name, described, err)
		}
		if purl := document.Packages[0].PackageExternalReferences[0].Locator; image != "" && !strings.HasPrefix(purl, "pkg:oci/tool@sha256%3A0000") {
			t.Errorf("%s: is called %s", name, purl)
		}
	}
}

func TestProgramWithoutBuildInformationIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("#!/bin/sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := sbom.Document(sbom.Subject{Name: "x", Binary: path}); err == nil {
		t.Error("made an SBOM of a script")
	}
}
