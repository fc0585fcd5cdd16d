// Command kube is every Kubernetes server program in one binary, the first argument says which.
//
// The five programs share nearly all of their code: one binary links once and is a third of the size of five.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kube kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet [flags]")
		os.Exit(2)
	}
	command, err := command(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// The programs read os.Args themselves, some before cobra does.
	os.Args = append([]string{os.Args[1]}, os.Args[2:]...)
	os.Exit(cli.Run(command))
}

func command(name string) (*cobra.Command, error) {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand(), nil
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand(), nil
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand(), nil
	case "kube-proxy":
		return proxy.NewProxyCommand(), nil
	case "kubelet":
		return kubeletCommand(kubelet.NewKubeletCommand)
	}
	return nil, fmt.Errorf("unknown program %q", name)
}

// kubeletCommand calls the constructor of the kubelet's command, which has no parameter in Kubernetes 1.31.
func kubeletCommand(constructor any) (*cobra.Command, error) {
	switch create := constructor.(type) {
	case func(context.Context) *cobra.Command:
		return create(context.Background()), nil
	case func() *cobra.Command:
		return create(), nil
	}
	return nil, fmt.Errorf("create the kubelet's command: %T is not known", constructor)
}
