package testcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/signal"
)

// tokenLife is the lifetime of the token that reads the daemon's metrics.
const tokenLife = 3 * time.Hour

// Daemon is the refit-daemon of the node.
type Daemon struct {
	PID int

	metrics, token string
	http           *http.Client
}

// Daemon finds the daemon of the node. Recreate has to be called before.
func (c *Cluster) Daemon(ctx context.Context) (*Daemon, error) {
	pods := &corev1.PodList{}
	err := c.API.List(ctx, pods, client.InNamespace(System), client.MatchingLabels{"app.kubernetes.io/name": "refit-daemon"},
		client.MatchingFields{"spec.nodeName": Node})
	if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
		return nil, fmt.Errorf("find refit-daemon: %d pods of it on %s: %w", len(pods.Items), Node, err)
	}
	pod := &pods.Items[0]
	pid, err := PID(ctx, &pod.Status.ContainerStatuses[0])
	if err != nil {
		return nil, fmt.Errorf("find the process of refit-daemon: %w", err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Namespace: c.Namespace}}
	if err := c.API.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("request a token: %w", err)
	}
	return &Daemon{
		PID: pid, token: token.Status.Token, metrics: "https://" + pod.Status.PodIP + ":10223/metrics",
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed, in a test cluster
		}},
	}, nil
}

// PID is the oldest process of a container.
func PID(ctx context.Context, container *corev1.ContainerStatus) (int, error) {
	id, err := identity.ParseContainerID(container.ContainerID)
	if err != nil {
		return 0, err
	}
	processes, err := signal.New("/proc")
	if err != nil {
		return 0, err
	}
	found, err := processes.Find(ctx, signal.Selector{Container: id, Choice: signal.Oldest})
	if err != nil {
		return 0, err
	}
	return found[0].PID, nil
}

// Metrics reads the daemon's metrics.
func (d *Daemon) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return Metrics(ctx, d.http, d.metrics, d.token)
}

// Metrics reads metrics in the text format of Prometheus, with a bearer token if that is not empty.
func Metrics(ctx context.Context, from *http.Client, url, token string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := from.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %w", errors.New(response.Status))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}
