package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// connect returns the connection and the namespace from the flags that every command has.
func connect(connection *genericclioptions.ConfigFlags) (*rest.Config, string, error) {
	config, err := connection.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent, config.QPS, config.WarningHandler = "kubectl-refit/"+version, -1, warnings
	namespace, _, err := connection.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// watcher returns a client for the objects of most commands, and the user's namespace.
func watcher(connection *genericclioptions.ConfigFlags) (client.WithWatch, string, error) {
	config, namespace, err := connect(connection)
	if err != nil {
		return nil, "", err
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(kinds); err != nil {
			return nil, "", err
		}
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: kinds})
	return api, namespace, err
}
