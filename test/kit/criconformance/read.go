package criconformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/poll"
)

func (s *suite) version(t *testing.T) {
	v, err := s.client.Version(t.Context())
	if err != nil || v.RuntimeName == "" || v.APIVersion != "v1" {
		t.Errorf("Version() = %+v, %v", v, err)
	}
}

func (s *suite) list(t *testing.T) {
	p := s.pod(t)
	other := s.pod(t).start(t, Obedient, 0)
	first := p.start(t, Brief, 0)
	second := p.start(t, Obedient, 1)
	s.exited(t, first)

	got, err := s.client.ListContainers(t.Context(), p.uid)
	if err != nil {
		t.Fatal(err)
	}
	want := []cri.Container{
		{ID: second, State: identity.StateRunning, Attempt: 1},
		{ID: first, State: identity.StateExited},
	}
	for i := range want {
		want[i].Name, want[i].SandboxID, want[i].Image = "app", p.sandbox, s.Image
		want[i].PodName, want[i].PodNamespace, want[i].PodUID = "pod", "refit-conformance", p.uid
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(cri.Container{}, "CreatedAt", "ImageID")); diff != "" {
		t.Errorf("ListContainers (-want +got):\n%s", diff)
	}
	if age := time.Since(got[0].CreatedAt); age < 0 || age > time.Hour {
		t.Errorf("created %s ago", age)
	}

	all, err := s.client.ListContainers(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range all {
		ids[c.ID] = true
	}
	if !ids[other] || !ids[first] || !ids[second] {
		t.Errorf("ListContainers of all pods misses some of ours: %v", ids)
	}
}

func (s *suite) listUnknown(t *testing.T) {
	got, err := s.client.ListContainers(t.Context(), "no-such-pod")
	if err != nil || len(got) != 0 {
		t.Errorf("ListContainers = %v, %v; want nothing", got, err)
	}
}

func (s *suite) status(t *testing.T) {
	p := s.pod(t)
	id := p.start(t, Obedient, 0)
	got, err := s.client.ContainerStatus(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := cri.ContainerStatus{
		Container: cri.Container{
			ID: id, Name: "app", PodName: "pod", PodNamespace: "refit-conformance", PodUID: p.uid,
			State: identity.StateRunning, Image: s.Image,
		},
		Hash: "c0ffee", PreStopHandler: `{"sleep":{"seconds":1}}`,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(time.Time{}), cmpopts.IgnoreFields(cri.Container{}, "ImageID")); diff != "" {
		t.Errorf("ContainerStatus (-want +got):\n%s", diff)
	}
	if got.StartedAt.Before(got.CreatedAt) || !got.FinishedAt.IsZero() {
		t.Errorf("created %s, started %s, finished %s", got.CreatedAt, got.StartedAt, got.FinishedAt)
	}
}

func (s *suite) statusExited(t *testing.T) {
	got := s.exited(t, s.pod(t).start(t, Brief, 0))
	if got.ExitCode != 3 || got.Reason != "Error" || got.FinishedAt.IsZero() {
		t.Errorf("ContainerStatus = %+v, want exit code 3, Error and a time of finish", got)
	}
}

func (s *suite) statusUnknown(t *testing.T) {
	_, err := s.client.ContainerStatus(t.Context(), strings.Repeat("0", 64))
	if !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("ContainerStatus = %v, want ErrNotFound", err)
	}
}

// Runtimes answer for a prefix; the client must not.
func (s *suite) statusPrefix(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	_, err := s.client.ContainerStatus(t.Context(), id[:20])
	if !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("ContainerStatus = %v, want ErrNotFound", err)
	}
}

func (s *suite) sandboxIP(t *testing.T) {
	ip, err := s.client.SandboxIP(t.Context(), s.pod(t).uid)
	if err != nil || ip != "" {
		t.Errorf("SandboxIP on the host's network = %q, %v; want none", ip, err)
	}
	_, err = s.client.SandboxIP(t.Context(), "no-such-pod")
	if !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("SandboxIP of an unknown pod = %v, want ErrNotFound", err)
	}
}

// exited waits for the end of a container that ends by itself.
func (s *suite) exited(t *testing.T, id string) (got cri.ContainerStatus) {
	t.Helper()
	poll.Until(t, "container "+id+" has exited", func() bool {
		var err error
		if got, err = s.client.ContainerStatus(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return got.State == identity.StateExited
	})
	return got
}
