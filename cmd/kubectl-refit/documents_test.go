package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/test/kit/markdown"
)

// Commands in the documents and in the help have to be ones that the program has, with flags that it has.
func TestCommandsOfTheDocumentsParse(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{}
	pages, err := markdown.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		blocks, err := markdown.Read(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			if block.Language == "sh" {
				scripts[block.String()] = block.Text
			}
		}
	}
	var examples func(*cobra.Command)
	examples = func(cmd *cobra.Command) {
		scripts[cmd.CommandPath()+" --help"] = cmd.Example
		for _, child := range cmd.Commands() {
			examples(child)
		}
	}
	examples(command("dev"))
	checked := 0
	for where, script := range scripts {
		commands, err := markdown.Commands(script)
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, words := range commands {
			if len(words) < 3 || words[0] != "kubectl" || words[1] != "refit" {
				continue
			}
			checked++
			if err := parse(words[2:]); err != nil {
				t.Errorf("%s: %q: %v", where, words, err)
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d commands", checked)
	}
}

// parse does what the program does before it runs a command.
func parse(args []string) error {
	cmd, rest, err := command("dev").Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

func TestParseRefusesWhatTheProgramHasNot(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"restrat", "pod/web"}, {"restart", "pod/web", "--max-unready=1"}, {"restart", "deployment/a", "b"}, {"set", "image", "pod/web"}} {
		if err := parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
