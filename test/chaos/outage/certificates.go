package outage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// The objects of an installation that have to do with certificates.
const (
	certificatesJob = "refit-certificates"
	authoritySecret = "refit-manager-webhook-ca"
	servingSecret   = "refit-manager-webhook-cert"
)

// certificateRotation has the authority of the webhooks' certificates replaced, as after the loss of its key, while
// requests go on to be created: none of them may fail by it.
func (o *Outages) certificateRotation(ctx context.Context, _ *rand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	begin := time.Now()
	before, err := o.secret(ctx, servingSecret)
	if err != nil {
		return err
	}
	authority, err := o.secret(ctx, authoritySecret)
	if err != nil {
		return err
	}
	authority.Data = nil
	if err := o.cluster.Update(ctx, authority); err != nil {
		return fmt.Errorf("empty the secret of the authority: %w", err)
	}
	if err := o.renew(ctx); err != nil {
		return err
	}
	err = cluster.Until(ctx, "another serving certificate", cluster.RolloutTime, func(ctx context.Context) bool {
		now, err := o.secret(ctx, servingSecret)
		return err == nil && len(now.Data[corev1.TLSCertKey]) > 0 && !bytes.Equal(now.Data[corev1.TLSCertKey], before.Data[corev1.TLSCertKey])
	})
	if err != nil {
		return err
	}
	const takenUp = 3 * time.Second // by the managers, while requests are created
	if err := cluster.Pause(ctx, takenUp); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindCertificateRotation, Detail: "of another authority", Begin: begin})
}

// renew runs the CronJob of the certificates at once.
func (o *Outages) renew(ctx context.Context) error {
	var schedule batchv1.CronJob
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: certificatesJob}, &schedule); err != nil {
		return fmt.Errorf("find CronJob of the certificates: %w", err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.SystemNamespace, GenerateName: cluster.Label + "-renew-", Labels: schedule.Spec.JobTemplate.Labels,
		},
		Spec: schedule.Spec.JobTemplate.Spec,
	}
	job.Spec.TTLSecondsAfterFinished = new(int32(0))
	if err := o.cluster.Create(ctx, job); err != nil {
		return fmt.Errorf("renew certificates: %w", err)
	}
	return nil
}

func (o *Outages) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("find secret %s: %w", name, err)
	}
	return secret, nil
}
