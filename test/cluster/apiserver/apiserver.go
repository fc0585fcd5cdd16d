// Package apiserver asks the API server whether a cluster is up.
package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/test/cluster/state"
)

const timeout = 5 * time.Second

// Client asks the API server the few things that tell whether the cluster is up. A client library would
// be larger than all of this module.
type Client struct {
	server string
	client *http.Client
}

// Connect returns a Client of the API server at a port of the loopback address, with the certificates in the folder dir.
func Connect(dir string, port int) (*Client, error) {
	authority, err := os.ReadFile(dir + "/ca.crt")
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	certificate, err := tls.LoadX509KeyPair(dir+"/admin.crt", dir+"/admin.key")
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return &Client{
		server: fmt.Sprintf("https://127.0.0.1:%d", port),
		client: &http.Client{
			Timeout: timeout,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{
				RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
			}},
		},
	}, nil
}

func (a *Client) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return body, nil
}

// Ready fails until the API server answers that it is ready.
func (a *Client) Ready(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

// DefaultServiceAccount fails until pods can be made in namespace default.
func (a *Client) DefaultServiceAccount(ctx context.Context) error {
	_, err := a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

// NodesReady fails until every node is ready and its kubelet answers: what the API server knows of a node
// whose kubelet has died is right only after 40 seconds.
func (a *Client) NodesReady(ctx context.Context, numbers []int) error {
	body, err := a.get(ctx, "/api/v1/nodes")
	if err != nil {
		return err
	}
	ready, err := readyNodes(body)
	if err != nil {
		return err
	}
	var missing []string
	for _, number := range numbers {
		if name := state.NodeName(number); !slices.Contains(ready, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return errors.New("not ready: " + strings.Join(missing, ", "))
	}
	for _, number := range numbers {
		if _, err := a.get(ctx, "/api/v1/nodes/"+state.NodeName(number)+"/proxy/healthz"); err != nil {
			return err
		}
	}
	return nil
}

// readyNodes picks the names of the ready nodes from a NodeList in JSON.
func readyNodes(list []byte) ([]string, error) {
	var nodes struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Status struct {
				Conditions []struct {
					Type   string `json:"type"`
					Status string `json:"status"`
				} `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(list, &nodes); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	var ready []string
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				ready = append(ready, node.Metadata.Name)
			}
		}
	}
	return ready, nil
}
