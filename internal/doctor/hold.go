package doctor

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// What holds the workloads of InPlaceUpdatePolicies: a MutatingAdmissionPolicy with its binding, or a webhook configuration.
const (
	holdPolicy  = "refit-hold"
	holdWebhook = "refit-manager-workloads"
)

// holds checks that something holds workloads, if there are InPlaceUpdatePolicies whose owners do not do it.
func (e *examiner) holds(ctx context.Context) []Finding {
	var list v1alpha1.InPlaceUpdatePolicyList
	switch err := e.API.List(ctx, &list); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return one(Skipped, "there is no kind InPlaceUpdatePolicy")
	case err != nil:
		return unread("InPlaceUpdatePolicies", err)
	}
	switch {
	case len(list.Items) == 0:
		return one(Skipped, "there are no InPlaceUpdatePolicies")
	case e.deployment != nil && e.off("in-place-updates"):
		return one(Skipped, "refit-manager has --in-place-updates=false")
	}
	held := slices.DeleteFunc(list.Items, func(p v1alpha1.InPlaceUpdatePolicy) bool { return p.Spec.HoldPolicy == v1alpha1.HoldByOwner })
	if len(held) == 0 {
		return one(OK, "all InPlaceUpdatePolicies have holdPolicy ByOwner")
	}
	for _, by := range []struct {
		name    string
		objects []client.Object
	}{
		{"MutatingAdmissionPolicy " + holdPolicy, []client.Object{&admissionregistrationv1.MutatingAdmissionPolicy{}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{}}},
		{"MutatingWebhookConfiguration " + holdWebhook, []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}}},
	} {
		there, err := e.exist(ctx, by.objects)
		if err != nil {
			return unread("MutatingAdmissionPolicies and MutatingWebhookConfigurations", err)
		}
		if there {
			return one(OK, "by %s", by.name)
		}
	}
	return one(Failed, "nothing holds the workloads of %d InPlaceUpdatePolicies, as of %s/%s: their controllers replace pods when templates change; set policies.hold=auto of the chart, or holdPolicy: ByOwner",
		len(held), held[0].Namespace, held[0].Name)
}

// exist reports whether the objects that hold workloads are all there. Before Kubernetes 1.36 there is no kind
// MutatingAdmissionPolicy.
func (e *examiner) exist(ctx context.Context, objects []client.Object) (bool, error) {
	for _, object := range objects {
		name := holdPolicy
		if _, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
			name = holdWebhook
		}
		err := e.API.Get(ctx, client.ObjectKey{Name: name}, object)
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return true, nil
}
