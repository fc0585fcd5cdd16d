package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// postTimeout is longer than refit-manager keeps a caller that it does not know.
const postTimeout = 20 * time.Second

// post is the subcommand: it sends JSON once, and prints the status and the answer.
func post(url, body string, out io.Writer) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUsage, err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post: %w", err)
	}
	defer response.Body.Close()
	fmt.Fprintln(out, response.StatusCode)
	if _, err := io.Copy(out, response.Body); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return 0, nil
}
