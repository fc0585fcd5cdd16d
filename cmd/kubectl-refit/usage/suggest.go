package usage

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refit-project/refit/internal/console"
)

// farthest is the maximum distance between a word and its suggestion, in letters.
const farthest = 2

// habits are words of kubectl that are something else here, by the command without the name of the program: what to do instead.
var habits = map[string]string{
	"rollout restart": "; restarts in place are kubectl refit restart KIND/NAME",
	"status -w":       followStatus, "status --watch": followStatus,
	"logs -p": bothLogs, "logs --previous": bothLogs,
}

const (
	followStatus = "; kubectl refit watch follows what is in progress"
	bothLogs     = "; the command shows the end of the previous instance without it"
)

// habit returns what to do instead of a word of kubectl, or "".
func habit(cmd *cobra.Command, word string) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), cmd.Root().DisplayName()+" ")
	return habits[path+" "+word]
}

// UnknownSubcommand refuses arguments of a command that only has subcommands.
func UnknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = farthest
	meant := habit(cmd, args[0])
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 && meant == "" {
		meant = "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Errorf("%w: %s: unknown command %q%s; see %s --help", console.ErrUsage, cmd.CommandPath(), args[0], meant, cmd.CommandPath())
}

// WrongFlag returns the error about a flag, with a suggestion.
func WrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w: %w", console.ErrUsage, err)
	}
	meant, nearest := "", farthest+1
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if d := distance(unknown.GetSpecifiedName(), flag.Name); d < min(nearest, len(flag.Name)) && !flag.Hidden {
			meant, nearest = "; did you mean --"+flag.Name+"?", d
		}
	})
	if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() != "" {
		meant = cmp.Or(habit(cmd, "-"+name), meant)
	} else {
		meant = cmp.Or(habit(cmd, "--"+name), meant)
	}
	return fmt.Errorf("%w: %w%s; see %s --help", console.ErrUsage, err, meant, cmd.CommandPath())
}

// distance returns how many letters are added, removed or replaced between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the previous row, one column to the left
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = min(above, row[j]) + 1
			if cost := before; a[i] == b[j] {
				row[j+1] = min(row[j+1], cost)
			} else {
				row[j+1] = min(row[j+1], cost+1)
			}
			before = above
		}
	}
	return row[len(b)]
}
