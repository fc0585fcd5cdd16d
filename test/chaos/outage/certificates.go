package outage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/load"
)

const (
	authoritySecret  = "refit-manager-webhook-ca"
	servingSecret    = "refit-manager-webhook-cert"
	certificatesName = "refit-certificates"
)

// certificatesReplaced takes the certificate authority of the webhooks away and has refit-certificates make another, while up to 100
// requests a second are admitted. No call may fail of it.
func (o *Outages) certificatesReplaced(ctx context.Context, _ *mathrand.Rand) error {
	const rate = 100
	ctx = context.WithoutCancel(ctx)
	begin := time.Now()
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var admitted int64
	var calls errgroup.Group
	calls.Go(func() (err error) {
		admitted, err = load.DryRuns(calling, o.cluster, rate)
		return err
	})
	err := o.replaceAuthority(ctx)
	stop()
	if err := errors.Join(err, calls.Wait()); err != nil {
		return err
	}
	took := time.Since(begin)
	return o.journal.Fault(entry.Fault{
		Kind: entry.KindCertificates, Begin: begin,
		Detail: fmt.Sprintf("another authority, while %.0f requests a second were admitted", float64(admitted)/took.Seconds()),
	})
}

// replaceAuthority returns when every manager has had the time to take its new certificate into use.
func (o *Outages) replaceAuthority(ctx context.Context) error {
	const takenUp = 10 * time.Second
	if err := o.writeSecret(ctx, authoritySecret, map[string][]byte{}); err != nil {
		return err
	}
	if err := o.issueCertificates(ctx, "replace"); err != nil {
		return err
	}
	return cluster.Pause(ctx, takenUp)
}

// certificateExpired puts a certificate in place that has expired, waits until the managers say so, and has
// refit-certificates renew it. Until then requests are refused, and nothing else.
func (o *Outages) certificateExpired(ctx context.Context, _ *mathrand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	begin := time.Now()
	expired, err := expiredCertificate(begin)
	if err != nil {
		return err
	}
	if err := o.writeSecret(ctx, servingSecret, expired); err != nil {
		return err
	}
	err = cluster.Until(ctx, "managers with an expired certificate are not ready", cluster.RolloutTime, func(ctx context.Context) bool {
		return !o.cluster.Installed(ctx)
	})
	if err != nil {
		return err
	}
	if err := o.issueCertificates(ctx, "renew"); err != nil {
		return err
	}
	if err := cluster.Until(ctx, "managers with the renewed certificate", cluster.RolloutTime, o.cluster.Installed); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindManagerAway, Detail: "certificate expired", Begin: begin, Impedes: true})
}

// issueCertificates runs refit-certificates once, as its CronJob does, and waits for its end.
func (o *Outages) issueCertificates(ctx context.Context, name string) error {
	var cron batchv1.CronJob
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: certificatesName}, &cron); err != nil {
		return fmt.Errorf("find CronJob: %w", err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, GenerateName: cluster.Label + "-" + name + "-", Labels: map[string]string{cluster.Label: name}},
		Spec:       cron.Spec.JobTemplate.Spec,
	}
	if err := o.cluster.Create(ctx, job); err != nil {
		return fmt.Errorf("make job: %w", err)
	}
	err := cluster.Until(ctx, "end of job "+job.Name, cluster.RolloutTime, func(ctx context.Context) bool {
		return o.cluster.Get(ctx, client.ObjectKeyFromObject(job), job) == nil && job.Status.Succeeded > 0
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(o.cluster.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func (o *Outages) writeSecret(ctx context.Context, name string, data map[string][]byte) error {
	var secret corev1.Secret
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: name}, &secret); err != nil {
		return fmt.Errorf("find secret: %w", err)
	}
	secret.Data = data
	if err := o.cluster.Update(ctx, &secret); err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

// expiredCertificate is one of nobody's authority, which ended an hour ago.
func expiredCertificate(now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "expired"},
		NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}
