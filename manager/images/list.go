package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// lists makes an ImagePullJob for each image of an ImageListPullJob, and sums them up.
type lists struct{ *api }

// Reconcile implements reconcile.Reconciler.
func (l *lists) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var list v1beta1.ImageListPullJob
	if err := l.client.Get(ctx, key.NamespacedName, &list); err != nil || list.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	made, err := l.owned(ctx, &list)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, remove, again := image.PlanList(&list, made, l.Clock())
	if remove {
		return done(l.client.Delete(ctx, &list, client.Preconditions{UID: &list.UID, ResourceVersion: &list.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	if status.CompletionTime == nil {
		if err := l.make(ctx, &list, made); err != nil {
			return done(err)
		}
	}
	if !equality.Semantic.DeepEqual(list.Status, status) {
		changed := list.DeepCopy()
		changed.Status = status
		if err := l.client.Status().Update(ctx, changed); err != nil {
			return done(fmt.Errorf("write status of ImageListPullJob: %w", err))
		}
	}
	return l.later(again), nil
}

// owned are the jobs that the list has made, by image.
func (l *lists) owned(ctx context.Context, list *v1beta1.ImageListPullJob) (map[string]*v1beta1.ImagePullJob, error) {
	all, err := l.jobs(ctx, client.InNamespace(list.Namespace))
	if err != nil {
		return nil, err
	}
	owned := map[string]*v1beta1.ImagePullJob{}
	for i := range all {
		if metav1.IsControlledBy(&all[i], list) {
			owned[all[i].Spec.Image] = &all[i]
		}
	}
	return owned, nil
}

// make creates the jobs that are missing and deletes those of images that are no longer in the list.
func (l *lists) make(ctx context.Context, list *v1beta1.ImageListPullJob, owned map[string]*v1beta1.ImagePullJob) error {
	for name, job := range owned {
		if slices.Contains(list.Spec.Images, name) {
			continue
		}
		if err := l.client.Delete(ctx, job, client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ImagePullJob: %w", err)
		}
		l.Recorder.Eventf(list, job, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted ImagePullJob %s of image %s", job.Name, name)
	}
	for _, name := range list.Spec.Images {
		if owned[name] != nil {
			continue
		}
		sum := sha256.Sum256([]byte(name))
		job := &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: list.Namespace, Name: list.Name[:min(len(list.Name), 200)] + "-" + hex.EncodeToString(sum[:5]),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, v1beta1.GroupVersion().WithKind(v1beta1.KindImageListPullJob))},
			},
			Spec: v1beta1.ImagePullJobSpec{Image: name, ImagePullJobTemplate: *list.Spec.ImagePullJobTemplate.DeepCopy()},
		}
		if job.Spec.CompletionPolicy.Type == "" {
			job.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways // required by OpenKruise's CRD
		}
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = nil // it goes with the list
		if err := l.client.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create ImagePullJob of image %s: %w", name, err)
		} else if err == nil {
			l.Recorder.Eventf(list, job, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created ImagePullJob %s of image %s", job.Name, name)
		}
	}
	return nil
}
