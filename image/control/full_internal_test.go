package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// A NodeImage without room waits, and takes no slot of the other nodes.
func TestFullNodeImageDoesNotHoldUpTheOtherNodes(t *testing.T) {
	t.Parallel()
	owners := func(n int) []corev1.ObjectReference { return make([]corev1.ObjectReference, n) }
	for name, tc := range map[string]struct {
		fill func(*v1beta1.NodeImageSpec)
		says string
	}{
		"images": {says: "256 images", fill: func(s *v1beta1.NodeImageSpec) {
			for i := range v1beta1.MaxNodeImages {
				s.Images[fmt.Sprintf("other-%d", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
			}
		}},
		"tags": {says: "256 tags of game", fill: func(s *v1beta1.NodeImageSpec) {
			tags := make([]v1beta1.ImageTagSpec, v1beta1.MaxImageTags)
			for i := range tags {
				tags[i].Tag = fmt.Sprintf("other-%d", i)
			}
			s.Images["game"] = v1beta1.ImageSpec{Tags: tags}
		}},
		"jobs": {says: "1024 jobs for game:v1", fill: func(s *v1beta1.NodeImageSpec) {
			s.Images["game"] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1", OwnerReferences: owners(v1beta1.MaxTagOwners)}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{}}}
			tc.fill(&full.Spec)
			w := newWorld(t, full, node("b", nil), node("c", nil), pullJob())
			w.reconcile((&nodeImages{w.api}).Reconcile, node("b", nil))
			w.reconcile((&nodeImages{w.api}).Reconcile, node("c", nil))
			for _, other := range []string{"b", "c"} {
				w.reconcile((&jobs{w.api}).Reconcile, pullJob())
				w.daemon(other, v1beta1.ImagePhaseSucceeded)
			}
			w.reconcile((&jobs{w.api}).Reconcile, pullJob())
			result, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pullJob())})
			if err != nil || result.RequeueAfter != time.Minute { // there may be room without a change of the NodeImage
				t.Errorf("%+v, %v", result, err)
			}
			s := w.job("j").Status
			if s.Succeeded != 2 || s.CompletionTime != nil || !strings.Contains(s.Message, "NodeImage a has "+tc.says) {
				t.Errorf("%+v", s)
			}
			if n := len(w.events().Events); n != 1 {
				t.Fatalf("%d Events", n)
			} else if e := <-w.events().Events; !strings.HasPrefix(e, "Warning NodeImageFull") || !strings.Contains(e, "1 of 3 nodes wait") {
				t.Errorf("Event %q", e)
			}
			w.check(w.Get(t.Context(), client.ObjectKey{Name: "a"}, full))
			full.Spec.Images = nil // others have ended
			w.check(w.Update(t.Context(), full))
			w.reconcile((&jobs{w.api}).Reconcile, pullJob())
			if s := w.job("j").Status; s.Message != "job is running, progress 66.7%" || len(w.nodeImage("a").Spec.Images) != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
