package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image/credentialprovider"
	imagenode "github.com/refit-project/refit/image/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	node            = "node-1"
	secretNamespace = "kruise-daemon-config"
)

// world is a node with its NodeImage, a registry and an API server, and a Controller at work on them.
type world struct {
	t      *testing.T
	source *cachetesting.FakeControllerSource
	end    func()

	mu       sync.Mutex
	object   *v1beta1.NodeImage
	writes   []v1beta1.NodeImageStatus
	writeErr error
	secrets  map[string]*corev1.Secret
	logins   []credentialprovider.Login
	loginErr error
	asked    []string // images that plugins were asked about
	onNode   map[string]string
	pulls    []cri.PullRequest
	pull     func(ctx context.Context, request cri.PullRequest) (string, error)
	progress func() (cri.Progress, error)
	metered  []string // registry, repository and digest of the pulls whose progress is asked for
	events   []string
	registry *prometheus.Registry
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, source: cachetesting.NewFakeControllerSource(), end: func() {}, secrets: map[string]*corev1.Secret{}, onNode: map[string]string{},
			object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "one"}},
			pull: func(ctx context.Context, _ cri.PullRequest) (string, error) {
				select {
				case <-time.After(3 * time.Second):
					return "sha256:id", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
			progress: func() (cri.Progress, error) { return cri.Progress{}, cri.ErrUnsupported },
		}
		w.source.Add(w.object)
		defer w.source.Shutdown()
		defer func() { w.end() }()
		test(w)
	})
}

// run starts a daemon, as if after a kill -9 if there was one before.
func (w *world) run() {
	w.end()
	w.registry = prometheus.NewRegistry()
	controller, err := imagenode.New(imagenode.Config{
		Node: node, API: w, Secrets: w, SecretNamespace: secretNamespace, Plugins: w, Runtime: w, Parallel: 3, Events: w,
		NodeImage: cache.NewSharedIndexInformer(w.source, &v1beta1.NodeImage{}, 0, cache.Indexers{}),
		Registry:  w.registry, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := controller.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.end = func() { cancel(); running.Wait(); w.end = func() {} }
}

// want replaces the spec: "repository:tag", with a version if it is not 0.
func (w *world) want(version int64, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object = w.object.DeepCopy()
	w.object.Spec.Images = map[string]v1beta1.ImageSpec{}
	for _, name := range names {
		slash := strings.LastIndexByte(name, '/') + 1 // before it may be a port
		path, tag, _ := strings.Cut(name[slash:], ":")
		repository := name[:slash] + path
		spec := w.object.Spec.Images[repository]
		spec.Tags = append(spec.Tags, v1beta1.ImageTagSpec{
			Tag: tag, Version: version, OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: "job"}},
		})
		spec.PullSecrets = []v1beta1.ReferenceObject{{Namespace: secretNamespace, Name: "s"}}
		spec.SandboxConfig = &v1beta1.SandboxConfig{Annotations: map[string]string{"a": "b"}}
		w.object.Spec.Images[repository] = spec
	}
	w.source.Modify(w.object)
}

// after lets time pass and returns the last status, as "repository:tag phase progress" for each image.
func (w *world) after(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for name, image := range w.object.Status.ImageStatuses {
		for _, tag := range image.Tags {
			lines = append(lines, fmt.Sprintf("%s:%s %s %d", name, tag.Tag, tag.Phase, tag.Progress))
		}
	}
	slices.Sort(lines)
	return lines
}

func (w *world) expect(d time.Duration, lines ...string) {
	w.t.Helper()
	if got := w.after(d); !slices.Equal(got, lines) {
		w.t.Errorf("status says %q, want %q", got, lines)
	}
}

func (w *world) message(repository string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tags := w.object.Status.ImageStatuses[repository].Tags; len(tags) > 0 {
		return tags[0].Message
	}
	return "none"
}

func (w *world) saw(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(event string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event, word) })
	})
}

// WriteStatus implements images.API as the API server does with a merge patch.
func (w *world) WriteStatus(_ context.Context, object *v1beta1.NodeImage, before []string, status v1beta1.NodeImageStatus) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writeErr != nil {
		return w.writeErr
	}
	if object.UID != w.object.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodeimages"}, node, nil)
	}
	changed := w.object.DeepCopy()
	images := changed.Status.ImageStatuses
	changed.Status = *status.DeepCopy()
	for name, image := range images {
		if _, ok := status.ImageStatuses[name]; !ok && !slices.Contains(before, name) {
			changed.Status.ImageStatuses[name] = image // nobody removed it
		}
	}
	w.writes = append(w.writes, status)
	w.object = changed
	w.source.Modify(changed)
	return nil
}

// Secret implements images.Secrets.
func (w *world) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.secrets[namespace+"/"+name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("get secret: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name))
}

// Logins implements images.Plugins.
func (w *world) Logins(_ context.Context, image string) ([]credentialprovider.Login, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, image)
	return slices.Clone(w.logins), w.loginErr
}

// ImageID implements images.Runtime.
func (w *world) ImageID(_ context.Context, image string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.onNode[image], nil
}

// PullImage implements images.Runtime.
func (w *world) PullImage(ctx context.Context, request cri.PullRequest) (string, error) {
	w.mu.Lock()
	w.pulls = append(w.pulls, request)
	pull := w.pull
	w.mu.Unlock()
	return pull(ctx, request)
}

// MeterPull implements images.Runtime.
func (w *world) MeterPull(registry, repository, digest string, _ time.Time) func(context.Context) (cri.Progress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metered = append(w.metered, strings.TrimSpace(registry+" "+repository+" "+digest))
	return func(context.Context) (cri.Progress, error) { return w.progress() }
}

// Event implements images.EventRecorder.
func (w *world) Event(about corev1.ObjectReference, eventType, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s %s %s/%s %s %s", eventType, about.Kind, about.Namespace, about.Name, reason, message))
}

// again recreates the object, as if it had been deleted.
func (w *world) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.source.Delete(w.object)
	w.object = w.object.DeepCopy()
	w.object.UID, w.object.Status = types.UID("two"), v1beta1.NodeImageStatus{}
	w.source.Add(w.object)
}
