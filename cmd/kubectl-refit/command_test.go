package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/test/kit/golden"
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

// helped returns the help of a command.
func helped(t *testing.T, args ...string) string {
	t.Helper()
	root := command("v1.2.3")
	var out bytes.Buffer
	root.SetArgs(append([]string{}, args...))
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHelpOfTheProgram(t *testing.T) {
	t.Parallel()
	golden.Check(t, "testdata/help.txt", helped(t))
}

// The connection has 20 flags, which are of no use in the help of each command.
func TestFlagsOfAllCommandsAreInOnePlace(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "restart --help", "set image --help", "rollout"} {
		out := helped(t, strings.Fields(args)...)
		if strings.Contains(out, "--certificate-authority") || !strings.Contains(out, `Use "kubectl refit options"`) || strings.Contains(out, "kubectl-refit") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	if out := helped(t, "set", "image", "--help"); !strings.Contains(out, "--drain-seconds") {
		t.Errorf("no flags of set in:\n%s", out)
	}
	if out := helped(t, "options"); !strings.Contains(out, "--certificate-authority") || !strings.Contains(out, "--namespace") {
		t.Errorf("%s", out)
	}
}
