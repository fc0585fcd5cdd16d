package ownpod

import (
	"context"
	"encoding/json"
	"fmt"
)

// review has the fields of authorization.k8s.io/v1 SelfSubjectAccessReview that are used.
type review struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Spec       reviewSpec   `json:"spec"`
	Status     reviewStatus `json:"status"`
}

type reviewSpec struct {
	Attributes attributes `json:"resourceAttributes"`
}

type attributes struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
}

type reviewStatus struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// May asks whether this program's role allows a verb on an object or collection. Every user may ask this about itself
// (system:basic-user).
func (c *Client) May(ctx context.Context, verb string, ref Reference) (bool, error) {
	body, err := json.Marshal(review{
		APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview",
		Spec: reviewSpec{attributes{
			Namespace: ref.Namespace, Verb: verb, Group: ref.Group, Version: ref.Version,
			Resource: ref.Resource, Subresource: ref.Subresource, Name: ref.Name,
		}},
	})
	if err != nil {
		return false, fmt.Errorf("encode review: %w", err)
	}
	reviews := Reference{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
	b, err := c.Create(ctx, reviews, body)
	if err != nil {
		return false, err
	}
	var answer review
	err = decode(b, reviews, &answer)
	return answer.Status.Allowed, err
}
