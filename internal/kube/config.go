package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config loads the connection to the API server: from the kubeconfig file if given, else from the pod's service account.
// There is no client-side rate limit: the API server limits clients itself (API Priority and Fairness), and a limit here
// would delay a hundred requests created at once.
func Config(kubeconfig, userAgent string) (*rest.Config, error) {
	load := rest.InClusterConfig
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, fmt.Errorf("load connection to the API server: %w", err)
	}
	config.UserAgent = userAgent
	config.QPS = -1
	return config, nil
}
