// Package cli is what the commands of kubectl-refit share: what they print while they work, and how they end. Each command is a
// package below it. Flags, kubeconfig files and os.Exit must stay out.
package cli
