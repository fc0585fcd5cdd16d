package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	askInterval = 25 * time.Millisecond
	// askPatience bounds the wait for an answer after the work has ended.
	askPatience = time.Minute
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
	var total time.Duration
	answered, failing := time.Now(), false
	ticker := time.NewTicker(askInterval)
	defer ticker.Stop()
	for ; ctx.Err() == nil || failing && time.Since(answered) < askPatience; <-ticker.C {
		if !a.answers(context.WithoutCancel(ctx), pod) {
			failing = true
			continue
		}
		if failing {
			total += time.Since(answered)
		}
		answered, failing = time.Now(), false
	}
	return total
}

func (a *asker) answers(ctx context.Context, pod string) bool {
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:80/proxy/", a.host, a.namespace, pod)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := a.client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
