package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	t.Parallel()
	page := strings.ReplaceAll(`text
<!-- test: cluster -->
~~~sh
kubectl get pods
~~~
1. step

   <!-- test: skip needs a registry -->
   ~~~sh
   make images
     more
   ~~~

~~~
plain

~~~
`, "~", "`")
	got, err := parse("page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Page: "page.md", Line: 3, Language: "sh", Text: "kubectl get pods\n", Mark: Cluster},
		{Page: "page.md", Line: 9, Language: "sh", Text: "make images\n  more\n", Mark: Skip, Value: "needs a registry"},
		{Page: "page.md", Line: 14, Text: "plain\n\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestMarksThatAreRefused(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"<!-- test: skip -->\n```sh\n```":   `needs a value`,
		"<!-- test: cluser -->\n```sh\n```": `unknown mark "cluser"`,
		"<!-- test: cluster -->\n\n```\n":   `in the line above a block`,
		"```sh\nls":                         `no end`,
		"<!-- test: cluster x -->\n```\n":   `has no value`,
	} {
		if _, err := parse("page.md", page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", page, err, want)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	got, err := Commands(`
# a comment
kubectl refit restart deployment/web -c app \
  --reason="stale connections" && echo 'a b' | tr a b
TOKEN=$(kubectl get secret x) curl -H "Bearer $TOKEN" http://x &
kubectl apply -f - <<END
not a command
END
`)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"kubectl", "refit", "restart", "deployment/web", "-c", "app", "--reason=stale connections"},
		{"echo", "a b"},
		{"tr", "a", "b"},
		{"curl", "-H", "Bearer $TOKEN", "http://x"},
		{"kubectl", "get", "secret", "x"},
		{"kubectl", "apply", "-f", "-"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if _, err := Commands("echo 'unterminated"); err == nil {
		t.Error("a script without its closing quote is accepted")
	}
}
