package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofOthers are messages on the page that programs of Kubernetes print.
var ofOthers = regexp.MustCompile(`from the API server|from kubectl|from kubelet|hostPath type check failed|violates PodSecurity|x509`)

// A user searches troubleshooting.md for a copied message: it has to be the one that is printed.
func TestMessagesOfTroubleshootingAreThoseOfThePrograms(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	walkGo(t, func(path string, content []byte) {
		if row, _ := place(filepath.Dir(path)); row >= 0 && !strings.HasSuffix(path, "_test.go") {
			sources.Write(content)
		}
	})
	checked := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(string(content), -1) {
		if ofOthers.MatchString(row[1]) {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if strings.HasPrefix(quoted[1], "kubectl ") {
				continue
			}
			checked++
			for part := range strings.SplitSeq(quoted[1], "...") {
				if !strings.Contains(sources.String(), strings.TrimSpace(part)) {
					t.Errorf("no program says %q", part)
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d messages were checked", checked)
	}
}
