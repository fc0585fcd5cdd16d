package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/manager"
)

const renderLong = `render prints what SidecarSets would inject into a pod when it is created, as a difference, and for each SidecarSet why it
is injected or not. It asks no cluster.

The files are YAML or JSON, of one or several objects: SidecarSets, a Pod or an object with a pod template, and the
Namespace of the pod if a namespaceSelector depends on its labels. The exit code is 1 if the pod would be refused.`

const renderExample = `  refit-manager sidecarset render -f pod.yaml -f sidecarset.yaml

  # what a Deployment of the cluster would get from the SidecarSets of the cluster
  kubectl get sidecarsets,namespaces -o yaml > cluster.yaml
  kubectl get deployment web -o yaml | refit-manager sidecarset render -f cluster.yaml -f -`

const compileLong = `compile prints a MutatingAdmissionPolicy and its binding for each SidecarSet, which inject what the webhook would, by the
API server alone: also while no refit-manager runs. The SidecarSets need spec.injectionStrategy.engine Policy, and have to be
as they are stored in the cluster. What depends on the pod cannot be compiled; the error names the fields.

The policy has to be compiled and applied again after a change of the SidecarSet. Until then new pods get what it was before,
and are updated by the rollout like any other. It needs a cluster that serves MutatingAdmissionPolicy in
admissionregistration.k8s.io/v1, as Kubernetes does since 1.36.`

const compileExample = `  kubectl get sidecarset log -o yaml | refit-manager sidecarset compile -f - | kubectl apply -f -`

func sidecarSetCommand() *cobra.Command {
	var files, excluded []string
	var namespace string
	render := &cobra.Command{
		Use: "render -f FILE...", Short: "Show what SidecarSets would inject into a pod, and why or why not", Long: renderLong, Example: renderExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.RenderSidecarSets(cmd.OutOrStdout(), cmd.InOrStdin(), files)
		},
	}
	compile := &cobra.Command{
		Use: "compile -f FILE...", Short: "Write SidecarSets as MutatingAdmissionPolicies, which inject without refit-manager", Long: compileLong, Example: compileExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.CompileSidecarSets(cmd.OutOrStdout(), cmd.InOrStdin(), files, namespace, excluded, time.Now())
		},
	}
	compile.Flags().StringVar(&namespace, "namespace", defaultNamespace(), "namespace of refit-manager, whose pods are not injected")
	compile.Flags().StringSliceVar(&excluded, "excluded-namespaces", nil, "further `namespaces` whose pods are not injected, as --webhook-excluded-namespaces of the manager")
	for _, command := range []*cobra.Command{render, compile} {
		command.Flags().StringSliceVarP(&files, "filename", "f", nil, "`file` with SidecarSets, and with a pod for render; - is standard input")
		if err := command.MarkFlagRequired("filename"); err != nil {
			panic(err) // the flag exists
		}
	}
	cmd := &cobra.Command{Use: "sidecarset", Short: "Look at SidecarSets without a cluster", Args: cobra.NoArgs}
	cmd.AddCommand(render, compile)
	return cmd
}
