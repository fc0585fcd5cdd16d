package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refit-project/refit/test/kit/markdown"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	notWord = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchor returns GitHub's anchor of a heading.
func anchor(heading string) string {
	heading = link.ReplaceAllString(strings.ReplaceAll(heading, "[", ""), "")
	return strings.ReplaceAll(notWord.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// pages returns the Markdown files of the repository, without files of others.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := markdown.Pages("..")
	if err != nil || len(found) < 20 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all = append(all, anchor(match[1]))
	}
	return all
}

// Links to other sites are not followed: a test must not depend on them.
func TestLinksBetweenPagesResolve(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "../docs/reference/api-") {
			continue // crd-ref-docs links types that it leaves out, and takes regular expressions for links
		}
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(content), ""), -1) {
			target, fragment, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: there is no such file", page, match[1])
				continue
			}
			if fragment == "" || !strings.HasSuffix(file, ".md") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors(string(text)), fragment) {
				t.Errorf("%s: link to %s: the page has no such heading", page, match[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were checked", checked)
	}
}

// The navigation of the site lists every page of this folder, and no others.
func TestSiteListsThePages(t *testing.T) {
	t.Parallel()
	site, err := os.ReadFile("../mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, match := range regexp.MustCompile(`(?m): ([A-Za-z0-9/-]+\.md)$`).FindAllStringSubmatch(string(site), -1) {
		listed = append(listed, match[1])
		if _, err := os.Stat(match[1]); err != nil {
			t.Errorf("mkdocs.yml: %v", err)
		}
	}
	for _, page := range pages(t) {
		if name, ok := strings.CutPrefix(page, "../docs/"); ok && !slices.Contains(listed, name) {
			t.Errorf("mkdocs.yml does not list %s", name)
		}
	}
}
