package inpod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/hotupdate/inpod/steps"
	"github.com/refit-project/refit/hotupdate/inpod/trigger"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/logbuffer"
	"github.com/refit-project/refit/test/kit/procfs"
)

// results are the last entries by their source.
type results map[string]result.Entry

func (r results) Put(source string, _ []output.Output, entry result.Entry) { r[source] = entry }
func (r results) Drop(string)                                              {}
func (r results) Flush(context.Context, string) error                      { return nil }

// The annotation of the KEP has a line, and the other the whole outcome. One that changes nothing is news for the first only.
func TestOutcomeIsStoredWhereItIsConfigured(t *testing.T) {
	t.Parallel()
	pod := output.Pod(identity.Pod{Namespace: "games", Name: "gs-0"})
	long := strings.Repeat("x", 2*result.MaxMessage)
	for name, tt := range map[string]struct {
		res    hotupdate.Result
		err    error
		state  result.State
		value  string
		detail map[string]any // without the time; nil: none
	}{
		"accepted": {hotupdate.Result{Changed: true, Revision: hotupdate.Revision{Digest: "d"}}, nil, result.Succeeded, "v1: Update success",
			map[string]any{"version": "v1", "phase": "Accepted", "digest": "d"}},
		"unchanged": {hotupdate.Result{Revision: hotupdate.Revision{Digest: "d"}}, nil, result.Succeeded, "v1: Update success", nil},
		"failed": {hotupdate.Result{Revision: hotupdate.Revision{Digest: "d"}}, errors.New("no"), result.Failed, "v1: Update failed: no",
			map[string]any{"version": "v1", "phase": "Failed", "error": "no"}},
		"rolled back": {hotupdate.Result{Changed: true}, &hotupdate.Failure{Phase: hotupdate.Verifying, Err: errors.New("no"), RolledBack: true}, result.Failed,
			"v1: Update failed: Verifying: no (rolled back)", map[string]any{"version": "v1", "phase": "Failed", "error": "Verifying: no (rolled back)", "rolledBack": true}},
		"failed, and says much": {hotupdate.Result{}, errors.New(long), result.Failed, "v1: Update failed: " + long,
			map[string]any{"version": "v1", "phase": "Failed", "error": long[:result.MaxMessage]}},
	} {
		for _, stored := range []bool{true, false} {
			p, kept := waiting(&logbuffer.Buffer{}), results{}
			p.host.Results = kept
			if stored {
				p.outputs, p.config.DetailAnnotationKey = []output.Output{output.Annotation{Object: pod, Key: "a"}}, "detail"
			}
			began := time.Now().Truncate(time.Second)
			p.report("v1", began, tt.res, tt.err)
			if !stored {
				if len(kept) > 0 {
					t.Errorf("%s: %v is stored, and nothing is configured", name, kept)
				}
				continue
			}
			if entry := kept["hot_update"]; entry.State != tt.state || entry.Value != tt.value || entry.Message != tt.value || entry.At.Before(began) {
				t.Errorf("%s: %s %.200s", name, entry.State, entry.Value)
			}
			var detail map[string]any
			if entry, ok := kept["hot_update/detail"]; ok {
				if err := json.Unmarshal([]byte(entry.Value), &detail); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				at, _ := detail["time"].(string)
				if when, err := time.Parse(time.RFC3339, at); err != nil || when.Before(began) {
					t.Errorf("%s: time %s, %v", name, at, err)
				}
				delete(detail, "time")
			}
			if diff := cmp.Diff(tt.detail, detail); diff != "" {
				t.Errorf("%s: detail (-want +got):\n%.2000s", name, diff)
			}
		}
	}
}

// The self-test asks for what is needed, and a role that has it all is enough.
func TestNeedsOfWhatIsConfigured(t *testing.T) {
	t.Parallel()
	sig := &steps.Signal{Config: process.Config{Comm: "game"}, SignalName: "SIGHUP"}
	record := []string{"get configmaps games/sidecar-result", "patch configmaps games/sidecar-result"}
	for name, tt := range map[string]struct {
		config  Config
		folder  string
		signals bool
		access  []string
	}{
		"nothing":                   {Config{LoadPatchType: "none"}, DefaultDir, false, record},
		"a folder":                  {Config{FileDir: "/web", LoadPatchType: "none"}, "/web", false, record},
		"no record":                 {Config{Restore: Restore{ConfigMap: "off"}}, DefaultDir, false, nil},
		"a signal":                  {Config{LoadPatchType: "signal", Signal: sig, Restore: Restore{ConfigMap: "off"}}, DefaultDir, true, nil},
		"a signal among others":     {Config{Reload: []steps.Action{{Touch: "a"}, {Signal: sig}}, Restore: Restore{ConfigMap: "off"}}, DefaultDir, true, nil},
		"a signal that is not sent": {Config{LoadPatchType: "none", Signal: sig, Restore: Restore{ConfigMap: "off"}}, DefaultDir, false, nil},
		"triggers": {Config{Restore: Restore{ConfigMap: "off"}, Triggers: []trigger.Config{{ConfigMap: "a"}, {Directory: "/b"}, {Secret: "c"}}}, DefaultDir, false,
			[]string{"watch configmaps games/a", "watch secrets games/c"}},
	} {
		p := waiting(&logbuffer.Buffer{})
		p.config, p.host.Pod = &tt.config, identity.Pod{Namespace: "games", Name: "gs-0"}
		p.record = p.newRecord()
		needs := p.Needs()
		var access []string
		for _, need := range needs.Access {
			access = append(access, need.Verb+" "+need.Of.String())
		}
		if needs.Signals != tt.signals || !slices.Equal(needs.Folders, []string{tt.folder}) || !slices.Equal(access, tt.access) {
			t.Errorf("%s: %+v", name, needs)
		}
	}
}

// An update is not tried only where another attempt may help.
func TestWhetherTheProcessToSignalCanBeFound(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a1", 32)
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 7, Start: 1, Comm: "game", Cmdline: "game\x00", Cgroup: "0::/../cri-containerd-" + id + ".scope\n"})
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	known := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + id}}}}
	of := func(c process.Config) []steps.Action {
		return []steps.Action{{Touch: "a"}, {Signal: &steps.Signal{Config: c, SignalName: "SIGHUP"}}}
	}
	app := of(process.Config{ContainerName: "app"})
	type look = func(*corev1.Pod) (*corev1.Pod, error)
	answers := func(pod *corev1.Pod, err error) look {
		return func(*corev1.Pod) (*corev1.Pod, error) { return pod, err }
	}
	for name, tt := range map[string]struct {
		reload             []steps.Action
		pod                *corev1.Pod
		look               look // nil: there is no API server
		found, unavailable bool
	}{
		"nothing is signalled":             {[]steps.Action{{Touch: "a"}}, nil, nil, true, false},
		"it is found":                      {app, known, nil, true, false},
		"by its name":                      {of(process.Config{Comm: "game"}), nil, answers(nil, errors.New("away")), true, false},
		"no process of the name":           {of(process.Config{Comm: "gone"}), nil, answers(nil, errors.New("away")), false, false},
		"the pod is not known":             {app, nil, nil, false, false},
		"the pod is read":                  {app, nil, answers(known, nil), true, false},
		"the pod that is read has another": {app, nil, answers(&corev1.Pod{}, nil), false, false},
		"the API server does not respond":  {app, nil, answers(nil, errors.New("away")), false, true},
		"the role does not allow it":       {app, nil, answers(nil, fmt.Errorf("get: %w", ownpod.ErrForbidden)), false, false},
		"the pod is gone":                  {app, nil, answers(nil, fmt.Errorf("get: %w", ownpod.ErrNotFound)), false, false},
	} {
		p, pod := waiting(&logbuffer.Buffer{}), tt.pod
		p.config = &Config{Reload: tt.reload}
		p.host = plugin.Host{Logger: slog.New(slog.DiscardHandler), Processes: fs, Observed: func() *corev1.Pod { return pod }}
		if tt.look != nil {
			p.host.Look = func(context.Context) (err error) {
				pod, err = tt.look(pod)
				return err
			}
		}
		err := p.locate(t.Context())
		if (err == nil) != tt.found || errors.Is(err, httpapi.ErrUnavailable) != tt.unavailable {
			t.Errorf("%s: %v", name, err)
		}
		pod = tt.pod
		if err := p.unavailable(t.Context(), "v1"); (err != nil) != tt.unavailable {
			t.Errorf("%s: the update is not tried: %v", name, err)
		}
	}
}
