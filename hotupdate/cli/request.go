package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

const (
	// maxAnswer bounds the answer of a sidecar, in bytes.
	maxAnswer = 4 << 20
	// busyDelay is the delay before a request is sent again, if the sidecar does not say one.
	busyDelay = 5 * time.Second
)

// answer is the response of a sidecar, as package hotupdate/inpod/httpapi writes it.
type answer struct {
	Version       string       `json:"version"`
	Changed       bool         `json:"changed"`
	Revision      *description `json:"revision"`
	Error         string       `json:"error"`
	Phase         string       `json:"phase"`
	RolledBack    bool         `json:"rolledBack"`
	ReloadSkipped string       `json:"untold"`
	Mended        []string     `json:"mended"`
}

// description is a revision.
type description struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	Size    int64     `json:"size"`
	Files   int       `json:"files"`
}

// String is how a revision is printed.
func (d *description) String() string {
	if d == nil {
		return "unknown revision"
	}
	files := "files"
	if d.Files == 1 {
		files = "file"
	}
	return fmt.Sprintf("%d %s, %d bytes, revision %s", d.Files, files, d.Size, printable(d.ID))
}

// maxText bounds a text of a sidecar that is printed, in bytes.
const maxText = 2 << 10

// printable returns a text of a sidecar as it may be printed.
func printable(text string) string {
	return foreign.Shorten(foreign.Printable(text), maxText)
}

// post sends a request, again while another update is in progress, or while the sidecar restores files.
func (c Config) post(ctx context.Context, path string, body any) (*answer, error) {
	content := must.JSON(body)
	for {
		var got answer
		again, err := c.send(ctx, http.MethodPost, path, content, &got)
		if again == 0 {
			return &got, err
		}
		c.Output.Wait("pod/%s: %v; trying again", c.Pod, err)
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

func (c Config) revisions(ctx context.Context) ([]description, error) {
	var all []description
	_, err := c.send(ctx, http.MethodGet, "/revisions", nil, &all)
	return all, err
}

// send sends one request and decodes its answer. It returns after which time to send it again, or 0.
func (c Config) send(ctx context.Context, method, path string, body []byte, into any) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.Client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%w: ask the sidecar of pod %s: %w", console.ErrFailed, c.Pod, err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("%w: read the answer of the sidecar of pod %s: %w", console.ErrFailed, c.Pod, err)
	}
	if response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(content, into); err != nil {
			return 0, fmt.Errorf("%w: the answer of the sidecar of pod %s is not JSON: is another program listening there?", console.ErrFailed, c.Pod)
		}
		return 0, nil
	}
	return again(response), c.refusal(response.StatusCode, content)
}

// again returns the delay that a sidecar asks for.
func again(response *http.Response) time.Duration {
	text := response.Header.Get("Retry-After")
	if text == "" || response.StatusCode != http.StatusConflict && response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > 60 {
		return busyDelay
	}
	return time.Duration(seconds) * time.Second
}

// refusal returns the error for an answer that is not 200.
func (c Config) refusal(code int, content []byte) error {
	var got answer
	if err := json.Unmarshal(content, &got); err != nil || got.Error == "" {
		got.Error = string(content)
	}
	said := errors.New(strings.TrimPrefix(printable(got.Error), "update failed: "))
	switch code {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: the sidecar of pod %s wants a token: --token-secret names the Secret, with the key token", console.ErrRefused, c.Pod)
	case http.StatusNotFound:
		return fmt.Errorf("%w: pod %s: %w; the plugin hot_update of its sidecar may be off: docs/sidecar.md", console.ErrRefused, c.Pod, said)
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		kept := ""
		if got.RolledBack {
			kept = "; the former files are in use again"
		}
		return fmt.Errorf("%w: pod %s: %w%s", console.ErrFailed, c.Pod, said, kept)
	}
	return fmt.Errorf("%w: pod %s: %w", console.ErrRefused, c.Pod, said)
}
