// Package usage parses command lines like kubectl, and explains errors in them.
package usage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refit-project/refit/internal/console"
)

// Object returns the object in the arguments: KIND/NAME, or two arguments KIND NAME as in kubectl.
func Object(args []string) string { return strings.Join(args, "/") }

// Objects returns the objects in the arguments as KIND/NAME: one or more KIND/NAME, or KIND NAME... as in kubectl.
func Objects(args []string) ([]string, error) {
	if len(args) < 2 {
		return []string{Object(args)}, nil
	}
	slashes := 0
	for _, arg := range args {
		slashes += min(strings.Count(arg, "/"), 1)
	}
	switch slashes {
	case len(args):
		return args, nil
	case 0:
		var objects []string
		for _, name := range args[1:] {
			objects = append(objects, args[0]+"/"+name)
		}
		return objects, nil
	}
	return nil, fmt.Errorf("%w: want either KIND/NAME... or KIND NAME..., and not both forms", console.ErrUsage)
}

// TimeoutFlag adds --timeout, which means the same everywhere. while says what goes on when the command has ended.
func TimeoutFlag(flags *pflag.FlagSet, timeout *time.Duration, while string) {
	flags.Var((*timeoutValue)(timeout), "timeout", "end with exit code 124 after this `time`, while "+while+"; 0 waits for ever")
}

type timeoutValue time.Duration

func (v *timeoutValue) Set(text string) error {
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout < 0 {
		return errors.New("want a time of at least 0, such as 90s or 5m")
	}
	*v = timeoutValue(timeout)
	return nil
}

func (v *timeoutValue) String() string {
	if *v == 0 {
		return "" // so that the help shows no default
	}
	return time.Duration(*v).String()
}

func (v *timeoutValue) Type() string { return "duration" }

// DryRunFlag adds --dry-run. As kubectl's it accepts none, server or client, which both mean server here: the API server
// checks the request, and stores nothing.
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
		return errors.New("want server, client or none")
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

// NotNegative refuses flags with a number below zero. names are the names of the flags.
func NotNegative(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if value := flags.Lookup(name).Value.String(); strings.HasPrefix(value, "-") {
			return fmt.Errorf("%w: --%s=%s: want a number of at least 0", console.ErrUsage, name, value)
		}
	}
	return nil
}

// maxUnavailablePattern matches what a RestartRollout accepts, see v1alpha1.RestartRolloutSpec.
var maxUnavailablePattern = regexp.MustCompile(`^([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)$`)

// MaxUnavailable refuses values of --max-unavailable that the API would refuse.
func MaxUnavailable(value string) error { return Pods("max-unavailable", value) }

// Pods refuses values of a flag, for a number of pods, that the API would refuse.
func Pods(flag, value string) error {
	if !maxUnavailablePattern.MatchString(value) {
		return fmt.Errorf("%w: --%s=%s: want a number of at least 1, or a percentage from 1%% to 100%%", console.ErrUsage, flag, value)
	}
	return nil
}

// partitionPattern matches what a RestartRollout accepts, see v1alpha1.RolloutPace.
var partitionPattern = regexp.MustCompile(`^([0-9]{1,9}|([0-9]|[1-9][0-9]|100)%)$`)

// Partition refuses values of --partition that the API would refuse.
func Partition(value string) error {
	if !partitionPattern.MatchString(value) {
		return fmt.Errorf("%w: --partition=%s: want a number of at least 0, or a percentage from 0%% to 100%%", console.ErrUsage, value)
	}
	return nil
}

// Arguments returns check with errors that show the expected form.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w: %s; see %s --help", console.ErrUsage, err, cmd.UseLine(), cmd.CommandPath())
		}
		return nil
	}
}

// ObjectThen returns the object in the first argument, or in the first two as in [Object], and the remaining arguments,
// which have the form NAME=VALUE.
func ObjectThen(args []string) (object string, changes []string) {
	n := min(1, len(args))
	if len(args) > 1 && !strings.ContainsAny(args[0]+args[1], "/=") {
		n = 2
	}
	return Object(args[:n]), args[n:]
}

// ObjectAndChanges accepts an object and at least one argument after it, see [ObjectThen].
func ObjectAndChanges() cobra.PositionalArgs {
	return Arguments(func(_ *cobra.Command, args []string) error {
		if _, changes := ObjectThen(args); len(changes) == 0 {
			return errors.New("requires at least 1 change of an object")
		}
		return nil
	})
}

// OneArgument accepts exactly one argument.
func OneArgument() cobra.PositionalArgs { return Arguments(cobra.ExactArgs(1)) }

// OneObject accepts arguments that name an object: one or two, see [Object].
func OneObject() cobra.PositionalArgs { return Arguments(cobra.RangeArgs(1, 2)) }
