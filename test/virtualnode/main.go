// Command virtual-node is a virtual node for end-to-end tests: a node without a kubelet and without a container runtime. It runs its
// pods as pods of one other namespace of the same cluster, the backend, on a node with a kubelet. It needs the rights of an
// administrator of the cluster, and has no API for logs, exec and port-forward: tests use the pod of the backend for these.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// requestsPerSecond is the limit of the client. Each pod needs some requests in each syncInterval.
const requestsPerSecond = 500

var errUsage = errors.New("--name, --kubeconfig and --backend-namespace are required")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	name := flag.String("name", "", "name of the node")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	namespace := flag.String("backend-namespace", "", "namespace of the pods that run the pods of the node")
	flag.Parse()
	if *name == "" || *kubeconfig == "" || *namespace == "" {
		return errUsage
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", *kubeconfig, err)
	}
	config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	return runNode(ctx, client, *name, newProvider(client, *namespace))
}
