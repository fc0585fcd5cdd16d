package main

import (
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

func sidecarSetCommand() *cobra.Command {
	var files []string
	render := &cobra.Command{
		Use: "render -f FILE...", Short: "Show what SidecarSets would inject into a pod, and why or why not", Long: renderLong, Example: renderExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.RenderSidecarSets(cmd.OutOrStdout(), cmd.InOrStdin(), files)
		},
	}
	render.Flags().StringSliceVarP(&files, "filename", "f", nil, "`file` with a pod or SidecarSets; - is standard input")
	if err := render.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is there
	}
	cmd := &cobra.Command{Use: "sidecarset", Short: "Look at SidecarSets without a cluster", Args: cobra.NoArgs}
	cmd.AddCommand(render)
	return cmd
}
