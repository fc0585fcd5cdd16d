package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// authorizer answers SubjectAccessReviews.
type authorizer struct {
	client.Writer
	answer func(*authorizationv1.SubjectAccessReviewSpec) (bool, error)
}

func (a authorizer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) (err error) {
	review := object.(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // nothing else is created
	review.Status.Allowed, err = a.answer(&review.Spec)
	return err
}

// nobody has any right.
var nobody = authorizer{answer: func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return false, nil }}

const askingSet = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"log","annotations":{"sidecarset.refit.dev/service-account":"agent"}},` +
	`"spec":{"selector":{"matchLabels":{"app":"web"}},"containers":[{"name":"agent","image":"agent:1"}]}}`

func TestASidecarSetThatAsksForAnAccountNeedsTheRightOfItsAuthor(t *testing.T) {
	t.Parallel()
	down := errors.New("the API server is down")
	for name, tc := range map[string]struct {
		answer func(*authorizationv1.SubjectAccessReviewSpec) (bool, error)
		code   int32
		want   string
	}{
		"has it": {answer: func(s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			return s.User == "bob" && s.Groups[0] == "devs" && s.Extra["scope"][0] == "x" && s.ResourceAttributes.Name == "agent" && s.ResourceAttributes.Namespace == "", nil
		}},
		"has it not": {
			answer: func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return false, nil },
			code:   http.StatusUnprocessableEntity, want: `needs the right to inject serviceaccounts "agent"`,
		},
		"nobody knows": {
			answer: func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, down },
			code:   http.StatusInternalServerError, want: down.Error(),
		},
	} {
		h := sidecarSetReviews(t)
		h.access = access{authorizer{answer: tc.answer}}
		request := sidecarSetReview(askingSet, "")
		request.Operation = admissionv1.Create
		request.UserInfo = authenticationv1.UserInfo{Username: "bob", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"x"}}}
		response := h.Handle(t.Context(), request)
		if response.Allowed != (tc.want == "") {
			t.Fatalf("%s: %+v", name, response)
		}
		if tc.want != "" && (response.Result.Code != tc.code || !strings.Contains(response.Result.Message, tc.want)) {
			t.Errorf("%s: %+v", name, response.Result)
		}
	}
}
