package control

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/test/kit/stalecache"
)

func nodeWithUID(name, uid string) *corev1.Node {
	n := node(name, nil)
	n.UID = types.UID(uid)
	return n
}

func neverEnds(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever }

// A node that is registered again under its name, for example with a new disk, has none of the images.
func TestNodeMadeAgainUnderItsNamePullsAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]*v1beta1.NodeImage{
		"NodeImage of ours":             nil,
		"NodeImage of a kruise-manager": {ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "before", Generation: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{nodeWithUID("a", "first"), pullJob(neverEnds)}
			if before != nil {
				objects = append(objects, before)
			}
			w := newWorld(t, objects...)
			w.look()
			w.daemon("a", v1beta1.ImagePhaseSucceeded)
			if w.look(); w.job("j").Status.Succeeded != 1 {
				t.Fatalf("%+v", w.job("j").Status)
			}
			w.check(w.Delete(t.Context(), nodeWithUID("a", "first")))
			w.check(w.Create(t.Context(), nodeWithUID("a", "second"))) // before the manager has looked
			w.look()
			is := w.nodeImage("a")
			if w.job("j").Status.Active != 1 || len(is.Status.ImageStatuses) != 0 || is.OwnerReferences[0].UID != "second" {
				t.Errorf("%+v, of %+v with %+v", w.job("j").Status, is.OwnerReferences, is.Status)
			}
		})
	}
}

// Another manager has made the NodeImage of the new node, of which this one's cache does not know.
func TestNodeImageOfANodeThatTheCacheHasNotSeenStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nodeWithUID("a", "second"), pullJob())
	w.look()
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	seen := &metav1.PartialObjectMetadata{ObjectMeta: nodeWithUID("a", "first").ObjectMeta}
	w.api.Nodes = cache.NewNodes(stalecache.Client{Client: w.Client, Object: seen}, w.Client)
	result, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if err != nil || result.RequeueAfter != conflict.First || len(w.nodeImage("a").Status.ImageStatuses) != 1 {
		t.Errorf("%+v, %v, %+v", result, err, w.nodeImage("a").Status)
	}
}
