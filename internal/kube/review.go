package kube

import (
	"context"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// UserName returns the client's user name in the API server (SelfSubjectReview).
func (c *Client) UserName(ctx context.Context) (string, error) {
	var review authenticationv1.SelfSubjectReview
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}
	if err := c.review(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review); err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// May asks the API server whether the client has a permission (SelfSubjectAccessReview).
func (c *Client) May(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission}}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
	err := c.review(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)
	return review.Status.Allowed, err
}

// MayGet asks the API server for the user of a bearer token and whether that user may GET a path that is not a resource,
// for example /metrics (TokenReview and SubjectAccessReview). It returns false for an unknown token.
func (c *Client) MayGet(ctx context.Context, token, path string) (bool, error) {
	review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	if err := c.review(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", &review); err != nil {
		return false, err
	}
	if !review.Status.Authenticated {
		return false, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	access.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &access); err != nil {
		return false, err
	}
	return access.Status.Allowed, nil
}

// review posts a question as JSON and decodes the response into the same object.
func (c *Client) review(ctx context.Context, path string, question any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode question to %s: %w", path, err)
	}
	answer, err := c.core.Post().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON).
		SetHeader("Accept", runtime.ContentTypeJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	if err := json.Unmarshal(answer, question); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}
