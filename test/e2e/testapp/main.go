// Command testapp is the program in the pods of the end-to-end and chaos tests. It writes down what
// happens to it, so that a test can tell from the application's side how often a container was
// started and which signals it got.
//
// Each event is one JSON line on stdout and at the end of the file that the environment variable
// SIGNAL_LOG names, which lies on a volume that outlives the container. CONTAINER_NAME and POD_UID,
// from the pod's spec, tell the lines of several containers apart.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	// Not news from outside: the Go runtime sends itself the one and children the other.
	signal.Ignore(syscall.SIGURG, syscall.SIGCHLD, syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, signals))
}
