package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/internal/recheck"
)

// lists creates an ImagePullJob for each image of an ImageListPullJob, and summarizes their status.
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
	stale := map[string]*v1beta1.ImagePullJob{}
	for name, job := range made {
		if list.Status.CompletionTime == nil && !follows(job, &list) {
			stale[name] = job
			delete(made, name)
		}
	}
	status, remove, again := jobplan.List(&list, made, l.Clock())
	if remove {
		return done(l.client.Delete(ctx, &list, client.Preconditions{UID: &list.UID, ResourceVersion: &list.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	var makeErr error
	status.Message = ""
	if status.CompletionTime == nil {
		makeErr = l.make(ctx, &list, made, stale)
		if apierrors.IsConflict(makeErr) {
			return done(makeErr)
		}
		if makeErr != nil {
			status.Message = foreign.Shorten(makeErr.Error(), maxMessage)
			again = recheck.On(l.Clock().Add(startDelay))
		}
	}
	if !equality.Semantic.DeepEqual(list.Status, status) {
		changed := list.DeepCopy()
		changed.Status = status
		if err := l.client.Status().Update(ctx, changed); err != nil {
			return done(fmt.Errorf("write status of ImageListPullJob: %w", err))
		}
	}
	if makeErr != nil && list.Status.Message != status.Message {
		l.Logger.Warn("ImagePullJobs of an ImageListPullJob not created", "list", key.String(), "err", makeErr)
	}
	return l.later(again), nil
}

// owned returns the jobs that the list has created, by image.
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

// make creates missing jobs, and deletes stale ones: jobs of images that are no longer in the list, and jobs with an
// old template, which are created again. It continues after a failed creation or deletion.
func (l *lists) make(ctx context.Context, list *v1beta1.ImageListPullJob, owned, stale map[string]*v1beta1.ImagePullJob) error {
	var errs []error
	for name, job := range stale {
		if job.DeletionTimestamp != nil {
			continue // its replacement will have the same name
		}
		if err := l.client.Delete(ctx, job, client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete ImagePullJob %s: %w", job.Name, err))
			continue
		}
		l.Recorder.Eventf(list, job, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted ImagePullJob %s of image %s", job.Name, name)
	}
	for _, name := range list.Spec.Images {
		if job := stale[name]; owned[name] != nil || job != nil && job.DeletionTimestamp != nil {
			continue
		}
		if err := l.create(ctx, list, name); err != nil {
			errs = append(errs, fmt.Errorf("create ImagePullJob of image %s: %w", foreign.Shorten(name, maxName), err))
		}
		if len(errs) == maxErrors {
			break
		}
	}
	return errors.Join(errs...)
}

// maxName limits the name of an image in a message, in bytes.
const maxName = 128

func (l *lists) create(ctx context.Context, list *v1beta1.ImageListPullJob, name string) error {
	job := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: list.Namespace, Name: jobName(list, name), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: templateHash(list)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, v1beta1.GroupVersion().WithKind(v1beta1.KindImageListPullJob))},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: name, ImagePullJobTemplate: template(&list.Spec.ImagePullJobTemplate)},
	}
	err := l.client.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		var existing v1beta1.ImagePullJob
		if err := l.Live.Get(ctx, client.ObjectKeyFromObject(job), &existing); err != nil {
			return client.IgnoreNotFound(err)
		}
		if metav1.IsControlledBy(&existing, list) { // the cache has not shown it yet
			return nil
		}
		return err
	}
	if err == nil {
		l.Recorder.Eventf(list, job, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created ImagePullJob %s of image %s", job.Name, name)
	}
	return err
}

// follows reports whether a job matches an image and the template of the list. Jobs created by OpenKruise or earlier
// versions have another hash or none, so their specs are compared. A job with the present hash is never created again,
// even if the API server has changed it.
func follows(job *v1beta1.ImagePullJob, list *v1beta1.ImageListPullJob) bool {
	if !slices.Contains(list.Spec.Images, job.Spec.Image) {
		return false
	}
	if job.Labels[appsv1.ControllerRevisionHashLabelKey] == templateHash(list) {
		return true
	}
	is, wanted := template(&job.Spec.ImagePullJobTemplate), template(&list.Spec.ImagePullJobTemplate)
	for _, t := range []*v1beta1.ImagePullJobTemplate{&is, &wanted} {
		t.ImagePullPolicy = cmp.Or(t.ImagePullPolicy, v1beta1.PullIfNotPresent)
	}
	return equality.Semantic.DeepEqual(is, wanted)
}

// template returns the template of the jobs of a list.
func template(of *v1beta1.ImagePullJobTemplate) v1beta1.ImagePullJobTemplate {
	t := *of.DeepCopy()
	t.CompletionPolicy.Type = cmp.Or(t.CompletionPolicy.Type, v1beta1.CompletionAlways) // required by OpenKruise's CRD
	t.CompletionPolicy.TTLSecondsAfterFinished = nil                                    // a job is deleted together with its list
	return t
}

func templateHash(list *v1beta1.ImageListPullJob) string {
	sum := sha256.Sum256(must.JSON(template(&list.Spec.ImagePullJobTemplate)))
	return hex.EncodeToString(sum[:8])
}

// jobName returns the name of the job of an image. It ends with a hash of the list's UID and the image, so that it
// differs from the names of other lists' jobs.
func jobName(list *v1beta1.ImageListPullJob, image string) string {
	sum := sha256.Sum256([]byte(string(list.UID) + "/" + image))
	return strings.TrimRight(list.Name[:min(len(list.Name), 200)], ".-") + "-" + hex.EncodeToString(sum[:8])
}
