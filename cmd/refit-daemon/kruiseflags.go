package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// ignoredFlags are flags of kruise-daemon that have no meaning here, so that the arguments of its DaemonSet can stay. The
// second group belongs to klog. The value reports whether the flag is boolean, and so may have no value.
var ignoredFlags = map[string]bool{
	"expectation-timeout": false, "feature-gates": false,
	"rest-config-burst": false, "rest-config-qps": false,

	"add-dir-header": true, "alsologtostderr": true, "legacy-stderr-threshold-behavior": true, "log-backtrace-at": false, "log-dir": false,
	"log-file": false, "log-file-max-size": false, "logtostderr": true, "one-output": true, "skip-headers": true,
	"skip-log-headers": true, "stderrthreshold": false, "v": false, "vmodule": false,
}

// addIgnoredFlags accepts the flags without listing them in the help text. klog's have underscores in their names, which
// are treated as dashes.
func addIgnoredFlags(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	for name, boolean := range ignoredFlags {
		shorthand := ""
		if len(name) == 1 {
			shorthand = name // -v=5
		}
		flag := flags.VarPF(new(ignored), name, shorthand, "of kruise-daemon, ignored")
		flag.Hidden = true
		if boolean {
			flag.NoOptDefVal = "true"
		}
	}
}

// ignored is the value of a flag that has no effect.
type ignored string

func (i *ignored) Set(value string) error { *i = ignored(value); return nil }
func (i *ignored) String() string         { return string(*i) }
func (i *ignored) Type() string           { return "string" }

// warnIgnored logs which of the given flags have no effect.
func warnIgnored(flags *pflag.FlagSet, logger *slog.Logger) {
	var given []string
	flags.Visit(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*ignored); ok {
			given = append(given, "--"+flag.Name)
		}
	})
	if len(given) > 0 {
		slices.Sort(given)
		logger.Warn("flags of kruise-daemon without effect in refit-daemon", "flags", strings.Join(given, " "))
	}
}
