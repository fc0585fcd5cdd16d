package cri

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// The first of a list is stopped, so containers with the same creation time need an order too.
func TestContainersNewestFirst(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	list := []Container{
		{ID: "b", CreatedAt: at},
		{ID: "a", CreatedAt: at},
		{ID: "oldest, highest attempt", CreatedAt: at.Add(-time.Second), Attempt: 9},
		{ID: "later attempt", CreatedAt: at, Attempt: 1},
		{ID: "newest", CreatedAt: at.Add(time.Second)},
	}
	slices.SortFunc(list, newestFirst)
	got := make([]string, len(list))
	for i, c := range list {
		got[i] = c.ID
	}
	if want := []string{"newest", "later attempt", "a", "b", "oldest, highest attempt"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The fuzz tests are in the package because only the conversion of foreign bytes is fuzzed, without a socket
// in between.

func FuzzBounded(f *testing.F) {
	f.Add([]byte("häuser"), 2)
	f.Add([]byte("\xff\xfe\x80\x80\x80\x80\x80"), 3)
	f.Add([]byte("🚢🚢"), 5)
	f.Add([]byte("🚢"), 3)
	f.Add([]byte("\xff"), 1)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		if most < 1 || most > 1<<20 {
			t.Skip()
		}
		got, cut := bounded(b, most)
		if !utf8.ValidString(got) || len(got) > most {
			t.Errorf("bounded(%q, %d) = %q is not UTF-8, or too long", b, most, got)
		}
		if len(b) > most && !cut || utf8.Valid(b) && cut != (len(b) > most) {
			t.Errorf("bounded(%q, %d) says cut: %v", b, most, cut)
		}
		if utf8.Valid(b) && (!strings.HasPrefix(string(b), got) || len(got) > most || (cut && len(got) <= most-utf8.UTFMax)) {
			t.Errorf("bounded(%q, %d) = %q, want as many whole runes as fit", b, most, got)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	for _, m := range []proto.Message{
		&runtimeapi.ContainerStatus{
			Id: "a", CreatedAt: -1, StartedAt: 1 << 62, Metadata: &runtimeapi.ContainerMetadata{Attempt: 1 << 31},
			Annotations: map[string]string{kubelet.AnnotationRestartCount: "-1"},
		},
		&runtimeapi.Container{Id: "a", State: 99},
		&runtimeapi.ContainerEventResponse{ContainerEventType: 99},
		&runtimeapi.ExecSyncResponse{Stdout: []byte("\xff"), ExitCode: -1},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var status runtimeapi.ContainerStatus
		if proto.Unmarshal(b, &status) == nil {
			got := statusOf(&status)
			if got.RestartCount < 0 || len(got.Message) > 3*512+3 || got.CreatedAt.Before(timeOf(0)) {
				t.Errorf("status %+v", got)
			}
		}
		var container runtimeapi.Container
		if proto.Unmarshal(b, &container) == nil {
			known := container.GetState() >= runtimeapi.ContainerState_CONTAINER_CREATED && container.GetState() < runtimeapi.ContainerState_CONTAINER_UNKNOWN
			if got := listed(&container).State; known == (got == identity.StateUnknown) {
				t.Errorf("state %d is %s", container.GetState(), got)
			}
		}
		var event runtimeapi.ContainerEventResponse
		if proto.Unmarshal(b, &event) == nil && eventOf(&event).Type == "" {
			t.Error("no type")
		}
		var exec runtimeapi.ExecSyncResponse
		if proto.Unmarshal(b, &exec) == nil {
			if got := execResult(&exec); !utf8.ValidString(got.Stdout) || len(got.Stdout) > maxExecOutput {
				t.Errorf("stdout %q", got.Stdout)
			}
		}
	})
}
