// Package console has what the commands of kubectl-refit share: their output and their exit codes. Flags, kubeconfig files
// and os.Exit must stay out.
package console
