// Package cli implements `kubectl refit set`: it reads a pod, lets package inplace decide, performs the steps, and
// prints its progress line by line.
package cli
