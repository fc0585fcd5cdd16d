package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refit-project/refit/test/kit/golden"
)

const referenceHead = `# kubectl refit

<!-- The part below "Commands" is made from the program: go test ./cmd/kubectl-refit -run Reference -update -->

` + "`make build` makes `dist/kubectl-refit`; in the PATH it is also `kubectl refit`. It uses the kubeconfig, context and namespace of kubectl, and needs no\n" +
	"more rights than the objects that it reads and creates.\n" + `
| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed; also if there is no such object, or if none matches ` + "`--selector`" + ` |
| 2 | refused, also for a missing right, and nothing has been changed; or wrong usage |
| 124 | not done within ` + "`--timeout`; `restart`, `pull` and `set` for a workload continue in the cluster, `set` for a pod see [inplace.md](inplace.md#if-a-command-ends-before-the-update)" + ` |
| 130 | interrupted; the same, and the message says how to follow, stop or continue it |

Output:

- On a terminal, progress is updated in place and in colour, unless ` + "`NO_COLOR`" + ` is set.
- On a narrow terminal the table of ` + "`restart`" + ` first leaves out container IDs, then it cuts names. ` + "`... and N more`" + ` stands for pods without a line.
- Without a terminal each change is printed as a line.
- Only what is updated in place is cut to the width of the terminal. Lists and plans are printed whole.
- ` + "`--output` has the formats of `kubectl get`: `name`, `json`, `yaml`, `jsonpath=`, `go-template=`, `custom-columns=` and their forms with `-file`" + `,
  apart from ` + "`custom-columns-file`; `wide` is for commands that list objects in a table" + `. Commands that print text instead of objects name theirs.

Completion: put ` + "`dist/kubectl-refit`" + ` and ` + "`cmd/kubectl-refit/kubectl_complete-refit`" + ` into the PATH (both are in the archives of a release). kubectl's
completion then completes ` + "`kubectl refit`" + ` too: names of pods, workloads, requests, SidecarSets, namespaces and contexts, the containers of
the typed pod or workload, and the variables that ` + "`set env`" + ` can change. Objects that the user may not list are not offered.
The second file is a shell script. On Windows, ` + "`kubectl-refit completion powershell`" + ` prints a script that completes ` + "`kubectl-refit`" + `; there is one for
` + "`bash`, `fish` and `zsh`" + ` as well.

All commands have the flags of kubectl for the cluster and the user, such as ` + "`--namespace`, `--context` and `--kubeconfig`" + `;
` + "`kubectl refit options`" + ` lists them.

## Commands
`

// reference is docs/cli.md.
func reference() string {
	var text strings.Builder
	text.WriteString(referenceHead)
	describe(&text, command("dev"))
	return text.String()
}

func describe(text *strings.Builder, cmd *cobra.Command) {
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(text, "\n### %s\n\n%s.\n\n", strings.Replace(cmd.CommandPath(), "kubectl-refit", "kubectl refit", 1), cmd.Short)
		block(text, strings.Replace(cmd.UseLine(), "kubectl-refit", "kubectl refit", 1))
		if cmd.Parent() == nil || cmd.Long != cmd.Parent().Long {
			block(text, cmd.Long)
		}
		block(text, cmd.Example)
		block(text, cmd.LocalFlags().FlagUsagesWrapped(0))
	} else if cmd.HasParent() {
		fmt.Fprintf(text, "\n## %s\n\n", strings.Replace(cmd.CommandPath(), "kubectl-refit", "kubectl refit", 1))
		block(text, cmd.Long)
		if flags := cmd.PersistentFlags().FlagUsagesWrapped(0); flags != "" {
			text.WriteString("All of its commands have these flags:\n\n")
			block(text, flags)
		}
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && child.Name() != "completion" && child.Name() != "help" {
			describe(text, child)
		}
	}
}

func block(text *strings.Builder, content string) {
	if content = strings.Trim(content, "\n"); content != "" {
		fmt.Fprintf(text, "```\n%s\n```\n\n", content)
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	golden.Check(t, "../../docs/cli.md", reference())
}

// Scripts depend on exit codes, so every command says which it has.
func TestEveryCommandSaysItsExitCodes(t *testing.T) {
	t.Parallel()
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.HasParent() && !strings.Contains(cmd.Long, "Exit codes: 0") {
			t.Errorf("%s does not", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			check(child)
		}
	}
	check(command("dev"))
}

// The page is generated, and does not show that the generator left flags out: once it had none of the flags of set.
func TestReferenceHasEveryFlag(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n##")
	section := func(cmd *cobra.Command) string {
		for _, s := range sections {
			if title, _, _ := strings.Cut(s, "\n"); strings.TrimLeft(title, "# ") == cmd.CommandPath() {
				return s
			}
		}
		return ""
	}
	var check func(*cobra.Command, string)
	check = func(cmd *cobra.Command, above string) {
		if cmd.HasParent() && cmd.IsAvailableCommand() {
			above += section(cmd)
			cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
				if flag.Name != "help" && !strings.Contains(above, "--"+flag.Name+" ") && !strings.Contains(above, "--"+flag.Name+"[") {
					t.Errorf("%s: no --%s", cmd.CommandPath(), flag.Name)
				}
			})
		}
		for _, child := range cmd.Commands() {
			if child.Name() != "completion" && child.Name() != "help" {
				check(child, above)
			}
		}
	}
	check(command("dev"), "")
}
