package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/cli/turn"
	"github.com/refit-project/refit/internal/console"
)

// workload is a ReplicaSet with the pods of servers, as a command sees it that lists them.
type workload struct {
	client.Client
	servers []*server
	forbid  string // the type of lists that are
	lacks   bool   // the CRD of ContainerRecreateRequests
}

func (w *workload) RESTMapper() meta.RESTMapper {
	if w.lacks {
		return meta.NewDefaultRESTMapper(nil)
	}
	return w.Client.RESTMapper()
}

func newWorkload(t *testing.T, pods int, objects ...client.Object) *workload {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	served := meta.NewDefaultRESTMapper(nil)
	for kind := range kinds.AllKnownTypes() {
		served.Add(kind, meta.RESTScopeNamespace)
	}
	w := &workload{Client: fake.NewClientBuilder().WithScheme(kinds).WithRESTMapper(served).WithObjects(objects...).Build()}
	for i := range pods {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		s.pod.Name, s.pod.UID, s.pod.Labels = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-%d", i)), map[string]string{"app": "web"}
		s.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "set", Controller: new(true)}}
		w.servers = append(w.servers, s)
	}
	return w
}

func (w *workload) server(name string) *server {
	var i int
	if _, err := fmt.Sscanf(name, "web-%d", &i); err != nil {
		panic(err)
	}
	return w.servers[i]
}

func (w *workload) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	pod, ok := into.(*corev1.Pod)
	if !ok { // the ReplicaSet: the pods that there are count
		return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, key.Name, nil)
	}
	found, err := w.server(key.Name).Pod(ctx, key.Namespace, key.Name)
	if err == nil {
		*pod = *found
	}
	return err
}

func (w *workload) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if kind := fmt.Sprintf("%T", into); w.forbid != "" && strings.Contains(kind, w.forbid) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: w.forbid}, "", errors.New("no"))
	}
	if _, ok := into.(*v1beta1.ContainerRecreateRequestList); ok && w.lacks {
		return &meta.NoKindMatchError{}
	}
	pods, ok := into.(*corev1.PodList)
	if !ok {
		return w.Client.List(ctx, into, options...)
	}
	for _, s := range w.servers {
		pod, err := s.Pod(ctx, "", "")
		if err != nil {
			return err
		}
		pods.Items = append(pods.Items, *pod)
	}
	return nil
}

func (w *workload) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	if err != nil || !json.Valid(data) {
		return errors.Join(err, errors.New("a patch that is no JSON"))
	}
	_, err = w.server(object.GetName()).PatchPod(ctx, object.(*corev1.Pod), "claim", data)
	return err
}

// start is a command about a pod. By default one pod may be unavailable, and PodDisruptionBudgets are asked.
func (w *workload) start(ctx context.Context, pod int, config inplacecli.Config, how change.Change) chan ended {
	limits := turn.Config{MaxUnavailable: intstr.FromInt32(1)}
	if config.Turn != nil {
		limits = *config.Turn
	}
	limits.API, limits.By, limits.Clock = w, fmt.Sprintf("command %p", &config), time.Now
	config.Turn = &limits
	done := make(chan ended, 1)
	go func() {
		var out bytes.Buffer
		config.API, config.Output = w.servers[pod], console.NewOutput(&out, false)
		err := inplacecli.Update(ctx, config, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: fmt.Sprintf("web-%d", pod)}, how)
		done <- ended{out.String(), err}
	}()
	return done
}

func (s *server) claim() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pod.Annotations[v1beta1.AnnotationDisruptionClaim]
}

// noDisruptions is a PodDisruptionBudget of 0.
func noDisruptions() *policyv1.PodDisruptionBudget {
	strict := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "strict"}}
	strict.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return strict
}

func TestCommandsForPodsOfOneWorkloadTakeOutOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkload(t, 3)
		var commands []chan ended
		for i := range w.servers {
			commands = append(commands, w.start(t.Context(), i, drainFor(20), images(t, "app=app:2")))
		}
		waited := 0
		for i, done := range commands {
			command := <-done
			if command.err != nil || w.servers[i].claim() != "" {
				t.Errorf("pod %d: %v, claim %q; said:\n%s", i, command.err, w.servers[i].claim(), command.said)
			}
			if strings.Contains(command.said, fmt.Sprintf("pod web-%d waits: as many pods of its workload are unavailable, or being updated, as may be (1)", i)) {
				waited++
			}
		}
		for i, one := range w.servers {
			for _, other := range w.servers[:i] {
				if apart := one.drained.Sub(other.drained).Abs(); apart < 20*time.Second {
					t.Errorf("two pods were taken out within %s", apart)
				}
			}
		}
		if waited != 2 {
			t.Errorf("%d commands have said that they wait, want 2", waited)
		}
	})
}

func TestCommandWaitsForAPodDisruptionBudgetAndWritesNothingButItsClaim(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		interrupt bool
		code      int
		words     string
	}{
		"time-out": {false, console.ExitTimeout, "last: pod web-0 waits: PodDisruptionBudget strict allows no more disruptions"},
		"Ctrl-C":   {true, console.ExitInterrupted, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorkload(t, 2, noDisruptions())
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				config := drainFor(5)
				config.Timeout = 3 * time.Minute
				done := w.start(ctx, 0, config, images(t, "app=app:2"))
				time.Sleep(2*time.Minute + time.Second)
				if w.servers[0].claim() == "" {
					t.Error("there is no claim while it waits")
				}
				if tt.interrupt {
					cancel(errors.New("interrupt signal received"))
				}
				command := <-done
				if console.ExitCode(command.err) != tt.code || !strings.Contains(command.err.Error(), tt.words) {
					t.Errorf("%v; said:\n%s", command.err, command.said)
				}
				s := w.servers[0]
				if s.claim() != "" || s.record() != "" || s.image("app") != "app:1" || s.count("") != 0 || s.count("status") != 0 {
					t.Errorf("claim %q, record %q, writes %v", s.claim(), s.record(), s.writes)
				}
			})
		})
	}
}

func TestPodThatCannotBecomeReadyByItselfIsUpdatedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkload(t, 2, noDisruptions())
		for _, s := range w.servers { // both, so more than one are unavailable
			s.broken["app:1"] = "CrashLoopBackOff"
			s.kubelet()
		}
		began := time.Now()
		command := <-w.start(t.Context(), 0, inplacecli.Config{}, images(t, "app=app:2"))
		if command.err != nil || strings.Contains(command.said, "waits") || time.Since(began) > 30*time.Second {
			t.Errorf("%v after %s; said:\n%s", command.err, time.Since(began), command.said)
		}
	})
}

func TestUpdateThatStopsNoContainerWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkload(t, 2, noDisruptions())
		w.forbid = "PodList" // nothing is listed
		command := <-w.start(t.Context(), 0, inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})))
		if command.err != nil || w.servers[0].count("claim") != 0 {
			t.Errorf("%v, writes %v; said:\n%s", command.err, w.servers[0].writes, command.said)
		}
	})
}

// The first has the turn, and its image does not come.
func TestSecondCommandForAPodThatIsTakenOutDoesNotWaitForTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkload(t, 2)
		w.servers[0].broken["app:2"] = "ImagePullBackOff"
		config := inplacecli.Config{Timeout: 2 * time.Minute}
		first := w.start(t.Context(), 0, config, images(t, "app=app:2"))
		time.Sleep(5 * time.Second)
		began := time.Now()
		second := <-w.start(t.Context(), 0, config, images(t, "app=app:3"))
		if second.err != nil || time.Since(began) > 30*time.Second {
			t.Errorf("%v after %s; said:\n%s", second.err, time.Since(began), second.said)
		}
		if command := <-first; console.ExitCode(command.err) != console.ExitFailed || w.servers[0].claim() != "" {
			t.Errorf("the first: %v, claim %q", command.err, w.servers[0].claim())
		}
	})
}

func TestDryRunSaysWhatTheUpdateWouldWaitFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for words, w := range map[string]*workload{"PodDisruptionBudget strict allows": newWorkload(t, 1, noDisruptions()), "": newWorkload(t, 1)} {
			command := <-w.start(t.Context(), 0, inplacecli.Config{DryRun: true}, images(t, "app=app:2"))
			if command.err != nil || strings.Contains(command.said, "would have to wait now") != (words != "") || !strings.Contains(command.said, words) || len(w.servers[0].writes) > 0 {
				t.Errorf("%q: %v, writes %v; said:\n%s", words, command.err, w.servers[0].writes, command.said)
			}
		}
	})
}
