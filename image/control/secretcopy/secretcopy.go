// Package secretcopy keeps copies of the pull secrets of ImagePullJobs in the one namespace from which daemons read
// Secrets. Its callers decide which jobs exist, and when copies are made and removed.
package secretcopy

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
)

// Copies makes and removes copies of pull secrets.
type Copies struct {
	client    client.Client
	live      client.Reader // reads from the API server and not from a cache; Secrets are never cached
	namespace string
	// held guards the copies: Make holds one unit, Remove holds all of them.
	held *semaphore.Weighted
}

// allUnits is the size of Copies.held.
const allUnits = math.MaxInt64

// New returns Copies that keeps copies in a namespace. It only reads from live.
func New(c client.Client, live client.Reader, namespace string) *Copies {
	return &Copies{client: c, live: live, namespace: namespace, held: semaphore.NewWeighted(allUnits)}
}

const managedBy = "refit-manager"

// Make updates the copies of a job's pull secrets and returns references to them. All jobs of a namespace share the
// copy of a Secret.
func (c *Copies) Make(ctx context.Context, job *v1beta1.ImagePullJob) ([]v1beta1.ReferenceObject, error) {
	if len(job.Spec.PullSecrets) == 0 {
		return nil, nil
	}
	if err := c.held.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for the removal of copies of pull secrets: %w", err)
	}
	defer c.held.Release(1)
	var copies []v1beta1.ReferenceObject
	for _, name := range job.Spec.PullSecrets {
		var source corev1.Secret
		err := c.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &source)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("pull secret %s cannot be read: bind the ClusterRole refit-pull-secret-reader in namespace %s (docs/images.md): %w", name, job.Namespace, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read pull secret %s: %w", name, err)
		}
		if source.Type != corev1.SecretTypeDockerConfigJson && source.Type != corev1.SecretTypeDockercfg {
			return nil, fmt.Errorf("pull secret %s is of type %q, which is not a type of pull secrets", name, source.Type)
		}
		reference := v1beta1.ReferenceObject{Namespace: c.namespace, Name: entry.SecretCopy(job.Namespace, name)}
		if err := c.write(ctx, &source, reference, job); err != nil {
			return nil, err
		}
		copies = append(copies, reference)
	}
	return copies, nil
}

func (c *Copies) write(ctx context.Context, source *corev1.Secret, reference v1beta1.ReferenceObject, job *v1beta1.ImagePullJob) error {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: reference.Namespace, Name: reference.Name, Labels: map[string]string{v1beta1.LabelPullSecretCopyBy: managedBy},
			Annotations: map[string]string{v1beta1.AnnotationPullSecretSource: source.Namespace + "/" + source.Name},
		},
		Type: source.Type, Data: source.Data,
	}
	refer(wanted, job)
	var existing corev1.Secret
	err := c.live.Get(ctx, client.ObjectKeyFromObject(wanted), &existing)
	switch {
	case apierrors.IsNotFound(err):
		err = c.client.Create(ctx, wanted)
	case err != nil:
	case existing.Labels[v1beta1.LabelPullSecretCopyBy] != managedBy:
		return fmt.Errorf("secret %s/%s exists and is not a copy made by %s", reference.Namespace, reference.Name, managedBy)
	case existing.Annotations[v1beta1.AnnotationPullSecretSource] != wanted.Annotations[v1beta1.AnnotationPullSecretSource]:
		return fmt.Errorf("secret %s/%s is the copy of %s", reference.Namespace, reference.Name, existing.Annotations[v1beta1.AnnotationPullSecretSource])
	case existing.Type != source.Type: // the type is immutable
		if err = c.client.Delete(ctx, &existing, client.Preconditions{UID: &existing.UID}); err == nil {
			err = c.client.Create(ctx, wanted)
		}
	case !maps.EqualFunc(existing.Data, source.Data, func(a, b []byte) bool { return string(a) == string(b) }):
		existing.Data = source.Data
		refer(&existing, job)
		err = c.client.Update(ctx, &existing)
	case refer(&existing, job):
		if err = c.client.Update(ctx, &existing); apierrors.IsConflict(err) {
			err = nil // another job that begins at the same time has written it; Refit does not read the annotation
		}
	}
	if err != nil {
		return fmt.Errorf("copy pull secret to namespace %s: %w", c.namespace, err)
	}
	return nil
}

// copyOf returns the name by which jobs refer to the source of a copy, and false if refit-manager may not remove the
// Secret. It may remove its own copies, and those that kruise-manager has left.
func copyOf(secret *corev1.Secret) (name string, ok bool) {
	if secret.Labels[v1beta1.LabelPullSecretCopyBy] == managedBy {
		return secret.Name, true
	}
	_, references := secret.Annotations[v1beta1.AnnotationPullSecretReferences]
	name, ok = secret.Annotations[v1beta1.AnnotationPullSecretSource]
	return name, ok && references
}

// Remove removes copies that no unfinished job needs. No copies are made meanwhile: Remove would remove a copy for a
// job that was created after the jobs were listed.
func (c *Copies) Remove(ctx context.Context) error {
	if err := c.held.Acquire(ctx, allUnits); err != nil {
		return fmt.Errorf("wait for copies of pull secrets that are being made: %w", err)
	}
	defer c.held.Release(allUnits)
	var copies corev1.SecretList
	if err := c.live.List(ctx, &copies, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list copies of pull secrets: %w", err)
	}
	copies.Items = slices.DeleteFunc(copies.Items, func(s corev1.Secret) bool {
		_, ok := copyOf(&s)
		return !ok
	})
	if len(copies.Items) == 0 {
		return nil
	}
	var list v1beta1.ImagePullJobList
	if err := c.live.List(ctx, &list); err != nil {
		return fmt.Errorf("list ImagePullJobs: %w", err)
	}
	needed := map[string][]string{} // jobs by the Secrets that they name
	for i := range list.Items {
		if job := &list.Items[i]; job.Status.CompletionTime == nil && job.DeletionTimestamp == nil {
			key := client.ObjectKeyFromObject(job).String()
			for _, name := range job.Spec.PullSecrets {
				for _, as := range []string{entry.SecretCopy(job.Namespace, name), job.Namespace + "/" + name} {
					needed[as] = append(needed[as], key)
				}
			}
		}
	}
	for i := range copies.Items {
		secret := &copies.Items[i]
		name, _ := copyOf(secret)
		var err error
		switch jobs := needed[name]; {
		case len(jobs) == 0:
			err = c.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		case secret.Labels[v1beta1.LabelPullSecretCopyBy] == managedBy && unrefer(secret, jobs):
			err = c.client.Update(ctx, secret)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove copy of a pull secret, or a job from it: %w", err)
		}
	}
	return nil
}
