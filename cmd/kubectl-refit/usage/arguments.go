// Package usage reads command lines as kubectl does, and says what is wrong with one in its own words.
package usage

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refit-project/refit/cli"
)

// Object is the object named by the arguments: KIND/NAME, or the two as in kubectl, KIND NAME.
func Object(args []string) string { return strings.Join(args, "/") }

// DryRunFlag is --dry-run. As kubectl's it takes none, server or client, which are the same here: the API server is asked, and stores nothing.
func DryRunFlag(flags *pflag.FlagSet, dryRun *bool, usage string) {
	flags.Var((*dryRunValue)(dryRun), "dry-run", usage)
	flags.Lookup("dry-run").NoOptDefVal = "server"
}

type dryRunValue bool

func (v *dryRunValue) Set(text string) error {
	if on, err := strconv.ParseBool(text); err == nil {
		*v = dryRunValue(on)
		return nil
	}
	if !slices.Contains([]string{"none", "server", "client"}, text) {
		return fmt.Errorf("%w: want server, client or none", cli.ErrUsage)
	}
	*v = text != "none"
	return nil
}

func (v *dryRunValue) String() string {
	if *v {
		return "server"
	}
	return "none"
}

func (v *dryRunValue) Type() string { return "string" }

// NotNegative refuses flags with a number below zero, by the names that the user knows.
func NotNegative(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if value := flags.Lookup(name).Value.String(); strings.HasPrefix(value, "-") {
			return fmt.Errorf("%w: --%s=%s: want a number of at least 0", cli.ErrUsage, name, value)
		}
	}
	return nil
}

// maxUnavailablePattern is what a RestartRollout accepts, see v1alpha1.RestartRolloutSpec.
var maxUnavailablePattern = regexp.MustCompile(`^([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)$`)

// MaxUnavailable refuses values of --max-unavailable that the API would.
func MaxUnavailable(value string) error {
	if !maxUnavailablePattern.MatchString(value) {
		return fmt.Errorf("%w: --max-unavailable=%s: want a number of at least 1, or a percentage from 1%% to 100%%", cli.ErrUsage, value)
	}
	return nil
}

// Arguments are checked as check does; the error shows the form that is wanted.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w: %s; see %s --help", cli.ErrUsage, err, cmd.UseLine(), cmd.CommandPath())
		}
		return nil
	}
}

// MinimumArguments are at least n.
func MinimumArguments(n int) cobra.PositionalArgs { return Arguments(cobra.MinimumNArgs(n)) }

// OneArgument is exactly one.
func OneArgument() cobra.PositionalArgs { return Arguments(cobra.ExactArgs(1)) }

// OneObject are the arguments that name an object: one or two, see [Object].
func OneObject() cobra.PositionalArgs { return Arguments(cobra.RangeArgs(1, 2)) }
