package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	actionUse = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.+)$`)
	pinnedUse = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

func workflows(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 3 {
		t.Fatalf("workflows %q, %v", files, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(content)
	}
	return texts
}

// A tag of an action can be moved to other code; a commit cannot.
func TestActionsAreNamedByCommit(t *testing.T) {
	t.Parallel()
	for file, text := range workflows(t) {
		for _, match := range actionUse.FindAllStringSubmatch(text, -1) {
			if !pinnedUse.MatchString(match[1]) {
				t.Errorf("%s: %s: want OWNER/NAME@COMMIT # vX.Y.Z", file, match[1])
			}
		}
	}
}

// Jobs ask for the permissions that they need, and only the release may write.
func TestWorkflowsHaveFewPermissions(t *testing.T) {
	t.Parallel()
	for file, text := range workflows(t) {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct{ Permissions map[string]string }
		}
		if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if workflow.Permissions == nil {
			t.Errorf("%s: without permissions for the whole file, each job has the permissions of the repository", file)
		}
		for scope, access := range workflow.Permissions {
			if access != "read" {
				t.Errorf("%s: %s: %s for all jobs", file, scope, access)
			}
		}
		for name, job := range workflow.Jobs {
			for scope, access := range job.Permissions {
				if access == "write" && scope != "id-token" && file != "release.yml" {
					t.Errorf("%s: job %s may write %s", file, name, scope)
				}
			}
		}
	}
}

// A release is never without signatures: they are made by the run itself, and no secret can be missing.
func TestReleasesOfTheWorkflowAreSigned(t *testing.T) {
	t.Parallel()
	text := workflows(t)["release.yml"]
	for _, want := range []string{"--keyless ", "id-token: write", "cosign verify-blob ", "cosign verify "} {
		if !strings.Contains(text, want) {
			t.Errorf("release.yml lacks %q", want)
		}
	}
	if strings.Contains(text, "--unsigned") || strings.Contains(text, "COSIGN_PRIVATE_KEY") {
		t.Error("release.yml may publish without a signature, or needs a secret for it")
	}
}
