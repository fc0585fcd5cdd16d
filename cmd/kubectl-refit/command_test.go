package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/console"
)

func TestWrongCommandLineExitsWith2AndShowsTheWay(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"bogus"}, {"restart"}, {"restart", "job/x"}, {"restart", "pod/x", "-o", "wide"}, {"pull", "x", "-o", "xml"}, {"why"}, {"why", "a/b"}, {"why", "x", "--output=xml"},
		{"set", "image", "pod/web"}, {"set", "label", "pod/web"}, {"set", "image", "web", "app=x"}, {"set", "image", "pod/web", "app"},
		{"set", "resources", "pod/web"}, {"set", "env", "pod/web", "--unknown"},
	} {
		root := command("test")
		var out bytes.Buffer
		root.SetArgs(args)
		root.SetOut(&out)
		root.SetErr(&out)
		if err := root.ExecuteContext(t.Context()); console.ExitCode(err) != console.ExitRefused {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"set"}, {"set", "image", "--help"}, {"set", "resources", "--help"}, {"set", "env", "--help"}} {
		root := command("test")
		var out bytes.Buffer
		root.SetArgs(args)
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		for _, words := range []string{"Exit codes", "--dry-run", "--timeout"} {
			if !strings.Contains(out.String(), words) {
				t.Errorf("%q: no %q", args, words)
			}
		}
	}
}

func TestMainStaysShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("main.go")
	if err != nil || bytes.Count(text, []byte("\n")) > 50 {
		t.Errorf("%v: main.go has more than 50 lines", err)
	}
}
