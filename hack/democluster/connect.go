package democluster

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Connect returns a client of the cluster for core/v1 and what add brings into the scheme.
func Connect(kubeconfig string, add ...func(*runtime.Scheme) error) (client.WithWatch, error) {
	ctrllog.SetLogger(logr.Discard()) // or the library complains of its absence on the terminal
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server says when it is too much
	scheme := runtime.NewScheme()
	for _, to := range append(add, corev1.AddToScheme) {
		err = errors.Join(err, to(scheme))
	}
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return api, nil
}
