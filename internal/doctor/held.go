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

// held checks that each held workload has an InPlaceUpdatePolicy, and each that the API server will hold: without one nobody releases it.
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
	held, err := e.labelled(ctx, v1alpha1.LabelHeld)
	if err != nil {
		return unread("Deployments, StatefulSets and DaemonSets", err)
	}
	toHold, err := e.labelled(ctx, v1alpha1.LabelHoldUID)
	if err != nil {
		return unread("Deployments, StatefulSets and DaemonSets", err)
	}
	n, left, next := 0, []string{}, []string{}
	for _, w := range held {
		if w.Labels[v1alpha1.LabelHeld] != "true" {
			continue
		}
		if n++; !governed[w.key()] {
			left = append(left, w.String())
		}
	}
	for _, w := range toHold {
		if w.Labels[v1alpha1.LabelHoldUID] == string(w.UID) && w.Labels[v1alpha1.LabelHeld] != "true" && !governed[w.key()] {
			next = append(next, w.String())
		}
	}
	var findings []Finding
	if len(left) > 0 {
		findings = one(Warning, "%s no InPlaceUpdatePolicy, so nothing updates or releases them: %s; create a policy, which releases its workload at the end of the update, or set the label %s to none, and then remove the hold and the label %s",
			wording.Count(len(left), "held workload has", "held workloads have"), first(left), v1alpha1.LabelHoldUID, v1alpha1.LabelHeld)
	}
	if len(next) > 0 {
		findings = append(findings, one(Warning, "%s no InPlaceUpdatePolicy, and the API server holds them when their templates change next: %s; refit-manager removes the label %s within 10 minutes",
			wording.Count(len(next), "workload has", "workloads have"), first(next), v1alpha1.LabelHoldUID)...)
	}
	switch {
	case len(findings) > 0:
		return findings
	case n == 0:
		return one(Skipped, "no workload is held")
	}
	return one(OK, "%s an InPlaceUpdatePolicy", wording.Count(n, "held workload has", "held workloads have"))
}

// labelled returns the workloads that have a label.
func (e *examiner) labelled(ctx context.Context, label string) (found []labelled, _ error) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind + "List"})
		if err := e.API.List(ctx, list, client.HasLabels{label}); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			found = append(found, labelled{kind: kind, PartialObjectMetadata: &list.Items[i]})
		}
	}
	return found, nil
}

type labelled struct {
	*metav1.PartialObjectMetadata

	kind string
}

func (w labelled) key() string { return w.Namespace + "/" + w.kind + "/" + w.Name }

func (w labelled) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.Namespace, w.Name) }

func first(names []string) string { return strings.Join(names[:min(len(names), maxHeld)], ", ") }
