package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(?:/[^`]*)?`")

// Tests that the pages name exist.
func TestTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	tests, checked := testNames(t), 0
	for _, page := range pages(t) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTest.FindAllStringSubmatch(string(content), -1) {
			checked++
			if !slices.Contains(tests, match[1]) {
				t.Errorf("%s: there is no test %s", page, match[1])
			}
		}
	}
	if checked < 80 {
		t.Errorf("only %d names were checked", checked)
	}
}

// meet are the things that take pods out of service. The page says for each two of them, and for two of each, what holds.
var meet = []string{
	"request", "RestartRollout", "SidecarSet in place", "hot upgrade", "Evict or repair", "`kubectl refit set`", "eviction", "rollout of the template",
}

func TestEveryPairOfThingsThatCanMeetOnAPodNamesItsTests(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("restarts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "### What can meet on a pod")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], ", ") {
			continue
		}
		for pair := range strings.SplitSeq(cells[0], ";") {
			said[strings.TrimSpace(pair)] = true
		}
		if !namedTest.MatchString(cells[2]) && !strings.Contains(cells[1], "as in Kubernetes") {
			t.Errorf("%s: no test", strings.TrimSpace(cells[0]))
		}
	}
	wanted := 0
	for i, one := range meet {
		for _, other := range meet[i:] {
			wanted++
			if pair := one + ", " + other; !said[pair] && pair != "rollout of the template, rollout of the template" { // one Deployment has one
				t.Errorf("the table does not say what holds for: %s", pair)
			}
		}
	}
	if len(said) > wanted {
		t.Errorf("%d pairs in the table, want at most %d: the list in this test lacks some", len(said), wanted)
	}
}
