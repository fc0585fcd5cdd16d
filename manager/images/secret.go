package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// annotationSource on a copy names the Secret it is of, as OpenKruise does: "namespace/name".
	annotationSource = "imagepulljobs.kruise.io/source-key"
	managedBy        = "refit-manager"
)

// copySecrets brings the copies of a job's pull secrets up to date and names them. Every job of a namespace shares the
// copy of a Secret.
func (j *jobs) copySecrets(ctx context.Context, job *v1beta1.ImagePullJob) ([]v1beta1.ReferenceObject, error) {
	if len(job.Spec.PullSecrets) == 0 {
		return nil, nil
	}
	if err := j.copies.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for the removal of copies of pull secrets: %w", err)
	}
	defer j.copies.Release(1)
	var copies []v1beta1.ReferenceObject
	for _, name := range job.Spec.PullSecrets {
		var source corev1.Secret
		err := j.Live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &source)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("pull secret %s cannot be read: bind the ClusterRole refit-pull-secret-reader in namespace %s (docs/images.md): %w", name, job.Namespace, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read pull secret %s: %w", name, err)
		}
		if source.Type != corev1.SecretTypeDockerConfigJson && source.Type != corev1.SecretTypeDockercfg {
			return nil, fmt.Errorf("pull secret %s is of type %q, which is not that of a pull secret", name, source.Type)
		}
		reference := v1beta1.ReferenceObject{Namespace: j.SecretNamespace, Name: copyName(job.Namespace, name)}
		if err := j.writeCopy(ctx, &source, reference); err != nil {
			return nil, err
		}
		copies = append(copies, reference)
	}
	return copies, nil
}

// copyName is the same for each look at a Secret. It ends in a hash of the namespace and name.
func copyName(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return strings.TrimRight(name[:min(len(name), 200)], ".-") + "-" + hex.EncodeToString(sum[:6])
}

func (j *jobs) writeCopy(ctx context.Context, source *corev1.Secret, reference v1beta1.ReferenceObject) error {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: reference.Namespace, Name: reference.Name, Labels: map[string]string{v1beta1.LabelPullSecretCopyBy: managedBy},
			Annotations: map[string]string{annotationSource: source.Namespace + "/" + source.Name},
		},
		Type: source.Type, Data: source.Data,
	}
	var existing corev1.Secret
	err := j.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &existing)
	switch {
	case apierrors.IsNotFound(err):
		err = j.client.Create(ctx, wanted)
	case err != nil:
	case existing.Labels[v1beta1.LabelPullSecretCopyBy] != managedBy:
		return fmt.Errorf("secret %s/%s exists and is not a copy made by %s", reference.Namespace, reference.Name, managedBy)
	case existing.Type != source.Type: // cannot be changed
		if err = j.client.Delete(ctx, &existing, client.Preconditions{UID: &existing.UID}); err == nil {
			err = j.client.Create(ctx, wanted)
		}
	case !maps.EqualFunc(existing.Data, source.Data, func(a, b []byte) bool { return string(a) == string(b) }):
		existing.Data = source.Data
		err = j.client.Update(ctx, &existing)
	}
	if err != nil {
		return fmt.Errorf("copy pull secret to namespace %s: %w", j.SecretNamespace, err)
	}
	return nil
}

// removeCopies removes the copies that no job which has not ended needs. No job is given a copy meanwhile: it would be removed if
// the job has been created since the jobs were listed.
func (j *jobs) removeCopies(ctx context.Context) error {
	if err := j.copies.Acquire(ctx, allCopies); err != nil {
		return fmt.Errorf("wait for copies of pull secrets that are being made: %w", err)
	}
	defer j.copies.Release(allCopies)
	var copies corev1.SecretList
	if err := j.Live.List(ctx, &copies, client.InNamespace(j.SecretNamespace), client.MatchingLabels{v1beta1.LabelPullSecretCopyBy: managedBy}); err != nil {
		return fmt.Errorf("list copies of pull secrets: %w", err)
	}
	if len(copies.Items) == 0 {
		return nil
	}
	var list v1beta1.ImagePullJobList
	if err := j.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("list ImagePullJobs: %w", err)
	}
	needed := map[string]bool{}
	for i := range list.Items {
		if job := &list.Items[i]; job.Status.CompletionTime == nil && job.DeletionTimestamp == nil {
			for _, name := range job.Spec.PullSecrets {
				needed[copyName(job.Namespace, name)] = true
			}
		}
	}
	for i := range copies.Items {
		if c := &copies.Items[i]; !needed[c.Name] {
			if err := j.client.Delete(ctx, c, client.Preconditions{UID: &c.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("remove copy of a pull secret: %w", err)
			}
		}
	}
	return nil
}
