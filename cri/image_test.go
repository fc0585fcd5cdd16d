package cri_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/kit/fakecri"
)

func imageClient(t *testing.T) (*fakecri.Runtime, *cri.Client) {
	t.Helper()
	runtime := fakecri.Start(t)
	client, err := cri.New(cri.Config{Endpoint: runtime.Endpoint(), CallTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtime, client
}

func TestPullImage(t *testing.T) {
	t.Parallel()
	runtime, client := imageClient(t)
	runtime.PutImage("reg/a:1", fakecri.RegistryImage{ID: "sha256:a", Auth: "u:p", Takes: 1500 * time.Millisecond}) // longer than CallTimeout
	if id, err := client.ImageID(t.Context(), "reg/a:1"); id != "" || err != nil {
		t.Errorf("%q, %v before the pull", id, err)
	}
	id, err := client.PullImage(t.Context(), cri.PullRequest{
		Image: "reg/a:1", Auth: cri.Auth{Username: "u", Password: "p"}, Annotations: map[string]string{"k": "v"},
	})
	if id != "sha256:a" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := client.ImageID(t.Context(), "reg/a:1"); id != "sha256:a" || err != nil {
		t.Errorf("%q, %v after the pull", id, err)
	}
	if pulls := runtime.Pulls(); pulls[0].User != "u" || pulls[0].Sandbox.GetAnnotations()["k"] != "v" {
		t.Errorf("%+v", pulls)
	}
}

func TestCancelledPullEndsInTheRuntime(t *testing.T) {
	t.Parallel()
	runtime, client := imageClient(t)
	runtime.PutImage("a", fakecri.RegistryImage{ID: "sha256:a", Takes: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in which the call arrives, also on a busy machine
	defer cancel()
	if _, err := client.PullImage(ctx, cri.PullRequest{Image: "a"}); !errors.Is(err, cri.ErrDeadline) {
		t.Errorf("got %v", err)
	}
	for until := time.Now().Add(5 * time.Second); len(runtime.Pulls()) == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if pulls := runtime.Pulls(); len(pulls) != 1 || pulls[0].Code == codes.OK {
		t.Errorf("%+v", pulls)
	}
}

func TestNameOfAnImageIsNoReasonForAFailure(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"reg.test:5000/unauthorized:v1", "reg.test/team/429/forbidden@sha256:00"} {
		runtime, client := imageClient(t)
		_, path, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(name, ":v1"), "@sha256:00"), "/")
		runtime.PutImage(name, fakecri.RegistryImage{Err: status.Errorf(codes.Unknown,
			`failed to resolve image %q: failed to do request: Head "http://reg.test/v2/%s/manifests/v1": connection refused`, name, path)})
		_, err := client.PullImage(t.Context(), cri.PullRequest{Image: name})
		if err == nil || errors.Is(err, cri.ErrUnauthorized) || errors.Is(err, cri.ErrTooManyRequests) {
			t.Errorf("got %v", err)
		}
	}
}

// The messages were observed with containerd 2.4.
func TestWhyAPullFailed(t *testing.T) {
	t.Parallel()
	const prefix = `failed to pull and unpack image "reg.test/a:1": failed to resolve reference "reg.test/a:1": `
	for name, test := range map[string]struct {
		code codes.Code
		text string
		want error
		says string
	}{
		"401":            {codes.Unknown, prefix + "unexpected status from HEAD request to https://reg.test/v2/a/manifests/1: 401 Unauthorized", cri.ErrUnauthorized, "401 Unauthorized"},
		"denied":         {codes.Unknown, prefix + "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", cri.ErrUnauthorized, "access denied"},
		"token":          {codes.Unknown, prefix + "failed to authorize: failed to fetch anonymous token: unexpected status: 403 Forbidden", cri.ErrUnauthorized, "403"},
		"404":            {codes.NotFound, prefix + "reg.test/a:1: not found", cri.ErrNotFound, "not found"},
		"429":            {codes.Unknown, prefix + "unexpected status from HEAD request to https://reg.test/v2/a/manifests/1: 429 Too Many Requests", cri.ErrTooManyRequests, "429"},
		"503":            {codes.Unknown, prefix + "unexpected status from HEAD request to https://reg.test/v2/a/manifests/1: 503 Service Unavailable", nil, "503 Service Unavailable"},
		"disk full":      {codes.Unknown, `failed to pull and unpack image "reg.test/a:1": failed to extract layer sha256:11: write /var/lib/x: no space left on device`, cri.ErrDiskFull, "no space left"},
		"wrong digest":   {codes.FailedPrecondition, `failed to pull and unpack image "reg.test/a:1": failed to copy: unexpected commit digest sha256:1, expected sha256:2: failed precondition`, cri.ErrDigestMismatch, "expected sha256:2"},
		"signed address": {codes.Unknown, `failed to copy: httpReadSeeker: failed open: Get "https://s3.test/x?X-Signature=secret&b=1": EOF`, nil, "https://s3.test/x?…"},
		"runtime away":   {codes.Unavailable, "connection refused", cri.ErrUnavailable, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime, client := imageClient(t)
			runtime.PutImage("reg.test/a:1", fakecri.RegistryImage{Err: status.Error(test.code, test.text)})
			_, err := client.PullImage(t.Context(), cri.PullRequest{Image: "reg.test/a:1"})
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) || !strings.Contains(err.Error(), test.says) ||
				strings.Contains(err.Error(), "secret") || strings.Count(err.Error(), "reg.test/a:1") > 2 {
				t.Errorf("got %v", err)
			}
		})
	}
}
