package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/refit-project/refit/test/kit/downtime"
)

const (
	askInterval = 25 * time.Millisecond
	askTimeout  = 500 * time.Millisecond
)

// asker sends requests to the pods of a namespace, through the API server's proxy: the pods' network need not be reachable.
type asker struct {
	client    *http.Client
	host      string
	namespace string
}

func newAsker(kubeconfig, namespace string) (*asker, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	client.Timeout = askTimeout
	return &asker{client: client, host: config.Host, namespace: namespace}, nil
}

// unanswered is for how long no request to the pod of that name, or the next one, is answered until ctx ends. What has begun
// by then is followed to its end.
func (a *asker) unanswered(ctx context.Context, pod string) time.Duration {
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:80/proxy/", a.host, a.namespace, pod)
	return downtime.Unanswered(ctx, askInterval, func(ctx context.Context) bool { return downtime.Answers(ctx, a.client, url) })
}
