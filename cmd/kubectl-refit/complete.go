package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
)

// completionTimeout is how long a shell waits for the cluster.
const completionTimeout = 5 * time.Second

// offer returns completions. It is called with the arguments before the one that is typed.
type offer func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error)

// completing converts an offer to cobra's completion. On errors it offers nothing; __complete logs them with
// BASH_COMP_DEBUG_FILE.
func completing(connection *genericclioptions.ConfigFlags, of offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		api, namespace, err := watcher(connection)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		values, err := of(ctx, completion.Cluster{API: api, Namespace: namespace}, args, typed)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(values, func(value string) bool { return strings.HasSuffix(value, "/") || strings.HasSuffix(value, "=") }) {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return values, directive
	}
}

// first completes only the first argument.
func first(of func(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error)) offer {
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		if len(args) > 0 {
			return nil, nil
		}
		return of(ctx, cluster, typed)
	}
}

// oneObject completes the object of a command, see [usage.Object]: what of offers for KIND/NAME, or only the names after a kind.
func oneObject(of func(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error)) offer {
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		switch {
		case len(args) == 0:
			return of(ctx, cluster, typed)
		case len(args) > 1 || strings.Contains(args[0], "/"):
			return nil, nil
		}
		values, err := of(ctx, cluster, usage.Object([]string{args[0], typed}))
		for i := range values {
			values[i] = strings.TrimPrefix(values[i], args[0]+"/")
		}
		return values, err
	}
}

// pods completes the pod of a command.
func pods(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error) {
	return cluster.Pods(ctx, typed)
}

// podsAndWorkloads completes the pod or workload of a command: pods without their kind too.
var podsAndWorkloads = oneObject(func(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error) {
	kind, _, hasKind := strings.Cut(typed, "/")
	if hasKind && !console.IsPod(kind) {
		return cluster.Objects(ctx, typed, completion.Updatable...)
	}
	pods, err := cluster.Pods(ctx, typed)
	if err != nil || hasKind || typed == "" {
		return pods, err
	}
	workloads, err := cluster.Objects(ctx, typed, completion.Updatable...)
	return append(pods, workloads...), err
})

// objects completes KIND/NAME, or the name after a kind.
func objects(kinds ...string) offer {
	return oneObject(func(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error) {
		return cluster.Objects(ctx, typed, kinds...)
	})
}

// severalObjects completes KIND/NAME..., or the names after a kind.
func severalObjects(kinds ...string) offer {
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		form := ""
		if len(args) > 0 && !strings.Contains(args[0], "/") {
			form = args[0] + "/"
		}
		values, err := cluster.Objects(ctx, form+typed, kinds...)
		for i := range values {
			values[i] = strings.TrimPrefix(values[i], form)
		}
		return slices.DeleteFunc(values, func(value string) bool { return slices.Contains(args, value) }), err
	}
}

// scheduleNames completes the name of a RestartSchedule.
var scheduleNames = first(func(ctx context.Context, cluster completion.Cluster, typed string) ([]string, error) {
	names, err := cluster.Objects(ctx, "restartschedule/"+typed)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "restartschedule/")
	}
	return names, err
})

// furtherOffer returns completions for the arguments after an object.
type furtherOffer func(ctx context.Context, cluster completion.Cluster, object, typed string) ([]string, error)

// objectThen completes a pod or workload, as KIND/NAME or KIND NAME, and then the arguments after it.
func objectThen(further furtherOffer) offer {
	named := objects(append([]string{"pod"}, completion.Updatable...)...)
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		object, _ := usage.ObjectThen(args)
		if !strings.Contains(object, "/") {
			return named(ctx, cluster, args, typed)
		}
		return further(ctx, cluster, object, typed)
	}
}

func containersToSet(ctx context.Context, cluster completion.Cluster, object, typed string) ([]string, error) {
	names, err := cluster.Containers(ctx, object, "", typed)
	for i := range names {
		names[i] += "="
	}
	return names, err
}

func variables(ctx context.Context, cluster completion.Cluster, object, typed string) ([]string, error) {
	return cluster.Variables(ctx, object, typed)
}

func nothingMore(context.Context, completion.Cluster, string, string) ([]string, error) {
	return nil, nil
}

// named completes names of objects of a kind, each once.
func named(kind schema.GroupVersionKind) offer {
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		names, err := cluster.Named(ctx, kind, typed)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), err
	}
}

// sidecarSetNames completes one name, or several.
func sidecarSetNames(several bool) offer {
	all := named(v1beta1.GroupVersion().WithKind("SidecarSet"))
	return func(ctx context.Context, cluster completion.Cluster, args []string, typed string) ([]string, error) {
		if len(args) > 0 && !several {
			return nil, nil
		}
		return all(ctx, cluster, args, typed)
	}
}

// completeContainers completes a flag with the containers of the first object in the arguments, or of the flag --selector.
func completeContainers(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, flag string) {
	mustRegister(cmd, flag, func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		of, _ := usage.ObjectThen(args)
		selector := ""
		if f := cmd.Flags().Lookup("selector"); f != nil {
			selector = f.Value.String()
		}
		return completing(connection, func(ctx context.Context, cluster completion.Cluster, _ []string, typed string) ([]string, error) {
			return cluster.Containers(ctx, of, selector, typed)
		})(cmd, args, typed)
	})
}

// completeConnection completes the flags that all commands have.
func completeConnection(root *cobra.Command, connection *genericclioptions.ConfigFlags) {
	completeNamespaces(root, connection, "namespace")
	for flag, of := range map[string]func() ([]string, error){
		"context": func() ([]string, error) {
			config, err := connection.ToRawKubeConfigLoader().RawConfig()
			return slices.Sorted(maps.Keys(config.Contexts)), err
		},
		"cluster": func() ([]string, error) {
			config, err := connection.ToRawKubeConfigLoader().RawConfig()
			return slices.Sorted(maps.Keys(config.Clusters)), err
		},
		"user": func() ([]string, error) {
			config, err := connection.ToRawKubeConfigLoader().RawConfig()
			return slices.Sorted(maps.Keys(config.AuthInfos)), err
		},
	} {
		mustRegister(root, flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			values, err := of()
			if err != nil {
				cobra.CompDebugln(err.Error(), false)
			}
			return slices.DeleteFunc(values, func(value string) bool { return !strings.HasPrefix(value, typed) }), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completeFormats completes the flag --output.
func completeFormats(cmd *cobra.Command, values []string) {
	mustRegister(cmd, "output", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeNamespaces completes a flag with the namespaces of the cluster.
func completeNamespaces(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, flag string) {
	mustRegister(cmd, flag, completing(connection, named(corev1.SchemeGroupVersion.WithKind("Namespace"))))
}

// secrets completes the value of a flag.
func secrets(ctx context.Context, cluster completion.Cluster, _ []string, typed string) ([]string, error) {
	return cluster.Secrets(ctx, typed)
}

func mustRegister(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag exists, once
	}
}
