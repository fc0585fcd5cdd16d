// Package cli is what kubectl-refit does, without the parsing of its command line: it reads a pod, has package inplace
// decide, carries the steps out, and prints what it does line by line. Flags, kubeconfig files and os.Exit must stay out.
package cli
