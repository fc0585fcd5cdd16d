package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wording"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// targets are the flags that select objects, as of kubectl rollout restart.
type targets struct {
	connection *genericclioptions.ConfigFlags
	selector   string
	files      resource.FilenameOptions
}

func (t *targets) add(flags *pflag.FlagSet) {
	flags.StringVarP(&t.selector, "selector", "l", "", "restart the pods that this `label selector` matches; after a kind of workload, the workloads that it matches")
	files := genericclioptions.FileNameFlags{
		Usage:     "restart the pods and workloads in this `file`, folder or URL; - is standard input",
		Filenames: &t.files.Filenames, Kustomize: &t.files.Kustomize, Recursive: &t.files.Recursive,
	}
	files.AddFlags(flags)
	flags.Lookup("kustomize").Usage = "restart the pods and workloads of this `kustomization` folder"
	flags.Lookup("recursive").Usage = "read folders of --filename with their subfolders"
}

// of returns what the arguments and flags select.
func (t *targets) of(args []string) ([]rolloutcli.Target, error) {
	fromFiles := len(t.files.Filenames) > 0 || t.files.Kustomize != ""
	switch {
	case fromFiles && (len(args) > 0 || t.selector != ""):
		return nil, fmt.Errorf("%w: name objects either by arguments and --selector, or by --filename or --kustomize", console.ErrUsage)
	case fromFiles:
		return t.ofFiles()
	case t.selector != "" && (len(args) == 0 || len(args) == 1 && console.IsPod(strings.ToLower(args[0]))):
		target, err := rolloutcli.ParseTarget("", t.selector)
		return []rolloutcli.Target{target}, err
	case t.selector != "":
		return t.ofKinds(args)
	}
	objects, err := usage.Objects(args)
	if err != nil {
		return nil, err
	}
	var found []rolloutcli.Target
	for _, object := range objects {
		target, err := rolloutcli.ParseTarget(object, "")
		if err != nil {
			return nil, err
		}
		found = append(found, target)
	}
	return found, nil
}

// ofKinds returns the workloads that the selector matches.
func (t *targets) ofKinds(args []string) ([]rolloutcli.Target, error) {
	for _, kind := range strings.Split(strings.Join(args, ","), ",") {
		if !rolloutcli.IsKind(kind) || console.IsPod(kind) {
			return nil, fmt.Errorf("%w: %q with --selector: want kinds of workloads, as deployment,statefulset, or only --selector for pods", console.ErrUsage, kind)
		}
	}
	_, namespace, err := connect(t.connection)
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(t.connection).Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		LabelSelectorParam(t.selector).ResourceTypeOrNameArgs(false, strings.Join(args, ",")).Flatten().Do().Infos()
	var several utilerrors.Aggregate
	switch {
	case errors.As(err, &several): // it hides the reason of the API server
		return nil, errors.Join(several.Errors()...)
	case err != nil:
		return nil, err
	}
	found := targetsOf(infos, namespace)
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s in namespace %s matches --selector=%s", strings.Join(args, ","), namespace, t.selector)
	}
	return found, nil
}

// ofFiles returns the pods and workloads in the files. Others that belong to an application stay as they are.
func (t *targets) ofFiles() ([]rolloutcli.Target, error) {
	namespace, enforced, err := t.connection.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	infos, err := resource.NewBuilder(t.connection).Unstructured().Local().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(enforced, &t.files).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("%w: --filename: %w", console.ErrUsage, err)
	}
	found := targetsOf(infos, namespace)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: --filename: no pod and no workload that can be restarted in %s", console.ErrUsage, wording.Count(len(infos), "object", "objects"))
	}
	return found, nil
}

// targetsOf returns the objects that can be restarted.
func targetsOf(infos []*resource.Info, namespace string) []rolloutcli.Target {
	var found []rolloutcli.Target
	for _, info := range infos {
		target, ok := rolloutcli.TargetOf(info.Object.GetObjectKind().GroupVersionKind(), cmp.Or(info.Namespace, namespace), info.Name)
		if ok {
			found = append(found, target)
		}
	}
	return found
}
