package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/sidecarset/podfields"
)

// access checks permissions of users through the API server.
type access struct{ client client.Writer }

// check returns errors for the permissions that the user does not have.
func (a access) check(ctx context.Context, user authenticationv1.UserInfo, rights []podfields.Right) (field.ErrorList, error) {
	var errs field.ErrorList
	for _, right := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{}, ResourceAttributes: &right.Attributes,
		}}
		for key, value := range user.Extra {
			review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
		}
		if err := a.client.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("ask whether the user may %s %s: %w", right.Attributes.Verb, right.Attributes.Resource, err)
		}
		if !review.Status.Allowed {
			errs = append(errs, right.Error(user.Username))
		}
	}
	return errs, nil
}
