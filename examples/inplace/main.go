// Command inplace sets the image of a container of a running pod, and waits until the container runs with it and is
// ready. It shows how a program outside of this repository uses the packages inplace, inplace/plan, inplace/record and
// inplace/reported; "kubectl refit set image" does more: it pulls the image first and takes turns with other commands.
//
//	inplace -namespace shop -pod web-0 -container app -image registry.example/app:2
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	namespace := flag.String("namespace", "default", "namespace of the pod")
	pod := flag.String("pod", "", "name of the pod")
	container := flag.String("container", "", "name of the container")
	image := flag.String("image", "", "image that the container gets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *namespace, *pod, *container, *image)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inplace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace, pod, container, image string) error {
	if pod == "" || container == "" || image == "" {
		return fmt.Errorf("the flags -pod, -container and -image are required")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	u := &updater{api: cluster{clients.CoreV1()}, out: os.Stdout}
	return u.setImage(ctx, namespace, pod, container, image)
}
