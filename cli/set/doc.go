// Package set is what `kubectl refit set` does: it reads a pod, has package inplace decide, carries the steps out, and prints
// what it does line by line.
package set
