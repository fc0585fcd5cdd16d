package control

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/internal/foreign"
)

const (
	// smallReview is the size in bytes up to which reviews are read side by side. Most have a few KiB.
	smallReview = 256 << 10
	// readWithin limits how long the body of a larger review may take to arrive.
	readWithin = 5 * time.Second
	// maxError limits the message about a review that is not read, in bytes.
	maxError = 1 << 10
)

// BoundReviews limits the memory for reviews that are not decoded yet. The API server does not authenticate itself to webhooks by default, so
// anyone in the cluster can send one. A webhook reads one review of more than 256 KiB at a time, and no review of more than
// [foreign.MaxObject] bytes.
func BoundReviews(next http.Handler) http.Handler {
	return &boundedReviews{next: next, large: make(chan struct{}, 1)}
}

// CheckReviews is BoundReviews for a webhook that decodes what it gets: the bounds of [foreign.CheckObject] apply to the whole review. A
// review that is not read is answered by an HTTP error and not by a refusal, so that the failurePolicy of the webhook decides.
func CheckReviews(webhook *admission.Webhook) http.Handler {
	return &boundedReviews{next: webhook, large: make(chan struct{}, 1), check: true}
}

type boundedReviews struct {
	next  http.Handler
	large chan struct{} // holds a value while a large review is handled
	check bool
}

// ServeHTTP implements http.Handler.
func (b *boundedReviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, smallReview+1))
	if err == nil && len(body) > smallReview {
		select {
		case b.large <- struct{}{}:
			defer func() { <-b.large }()
		case <-r.Context().Done():
			return
		}
		body, err = readLarge(w, body, r.Body)
	}
	if err == nil && b.check {
		err = foreign.CheckObject(body, nil)
	}
	if err != nil {
		http.Error(w, foreign.Shorten("read review: "+err.Error(), maxError), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.next.ServeHTTP(w, r)
}

// readLarge reads the rest of a review, within readWithin.
func readLarge(w http.ResponseWriter, begun []byte, rest io.Reader) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	whole := bytes.NewBuffer(begun)
	if _, err := io.Copy(whole, io.LimitReader(rest, foreign.MaxObject+1-int64(len(begun)))); err != nil {
		return nil, err
	}
	if whole.Len() > foreign.MaxObject {
		return nil, fmt.Errorf("it has more than %d bytes", foreign.MaxObject)
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return whole.Bytes(), nil
}
