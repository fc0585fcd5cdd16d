package doctor

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/wording"
)

// maxHeld limits the workloads that a finding names.
const maxHeld = 5

// held checks that each held workload has an InPlaceUpdatePolicy: without one nobody releases it.
func (e *examiner) held(ctx context.Context) []Finding {
	var policies v1alpha1.InPlaceUpdatePolicyList
	if err := e.API.List(ctx, &policies); err != nil {
		return one(Skipped, "the InPlaceUpdatePolicies cannot be read")
	}
	governed := map[string]bool{}
	for i := range policies.Items {
		p := &policies.Items[i]
		governed[p.Namespace+"/"+p.Spec.TargetRef.Kind+"/"+p.Spec.TargetRef.Name] = true
	}
	n, left := 0, []string{}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind + "List"})
		if err := e.API.List(ctx, list, client.MatchingLabels{v1alpha1.LabelHeld: "true"}); err != nil {
			return unread(kind+"s", err)
		}
		for i := range list.Items {
			n++
			if w := &list.Items[i]; !governed[w.Namespace+"/"+kind+"/"+w.Name] {
				left = append(left, fmt.Sprintf("%s %s/%s", kind, w.Namespace, w.Name))
			}
		}
	}
	switch {
	case n == 0:
		return one(Skipped, "no workload is held")
	case len(left) == 0:
		return one(OK, "%s an InPlaceUpdatePolicy", wording.Count(n, "held workload has", "held workloads have"))
	}
	named := strings.Join(left[:min(len(left), maxHeld)], ", ")
	return one(Warning, "%s no InPlaceUpdatePolicy, so nothing updates or releases them: %s; create a policy, which releases its workload at the end of the update, or remove the hold and the label %s",
		wording.Count(len(left), "held workload has", "held workloads have"), named, v1alpha1.LabelHeld)
}
