package certificates

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var install = InstallConfig{
	Namespace: "refit-system", Service: "hook", Secret: "cert", AuthoritySecret: "authority", Webhooks: []string{"refit-manager"},
	Logger: slog.New(slog.DiscardHandler),
}

// cluster is a fake API server that records writes, and fails the one named.
type cluster struct {
	client.Client
	writes []string
	fails  string
}

var errWrite = errors.New("connection lost")

func newCluster(t *testing.T) *cluster {
	t.Helper()
	types := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(types), admissionregistrationv1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "refit-system", Name: name} }
	c.Client = fake.NewClientBuilder().WithScheme(types).WithObjects(
		&corev1.Secret{ObjectMeta: meta("cert")}, &corev1.Secret{ObjectMeta: meta("authority")},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "refit-manager"},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "a.kb.io"}, {Name: "b.kb.io"}},
		},
	).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, api client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			if object.GetName() == c.fails {
				return errWrite
			}
			c.writes = append(c.writes, object.GetName())
			return api.Update(ctx, object, opts...)
		},
	}).Build()
	return c
}

// run installs and returns what was written.
func (c *cluster) run(t *testing.T, now time.Time) []string {
	t.Helper()
	c.writes = nil
	if err := Install(t.Context(), c, install, now); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(c.writes)
}

func (c *cluster) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "refit-system", Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	return &secret
}

func (c *cluster) bundles(t *testing.T) [][]byte {
	t.Helper()
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: "refit-manager"}, &configuration); err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	for _, webhook := range configuration.Webhooks {
		list = append(list, webhook.ClientConfig.CABundle)
	}
	return list
}

func (c *cluster) serving(t *testing.T) KeyPair {
	t.Helper()
	data := c.secret(t, "cert").Data
	return KeyPair{Certificate: data["tls.crt"], Key: data["tls.key"]}
}

func TestInstallUpdatesTheWebhooksFirstAndWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if diff := cmp.Diff([]string{"refit-manager", "authority", "cert"}, c.run(t, start)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, bundle := range c.bundles(t) {
		if !trustsName(t, bundle, c.serving(t), start) {
			t.Error("a webhook is not trusted")
		}
	}
	if key := c.secret(t, "cert").Data; !bytes.Equal(key["ca.crt"], c.bundles(t)[0]) || len(key["ca.key"]) > 0 || len(key) != 3 {
		t.Errorf("keys of the secret that the manager reads: %d", len(key))
	}
	if writes := c.run(t, start.Add(200*day)); len(writes) > 0 {
		t.Errorf("nothing to renew, but wrote %q", writes)
	}
	if diff := cmp.Diff([]string{"cert"}, c.run(t, start.Add(300*day))); diff != "" {
		t.Errorf("renewal (-want +got):\n%s", diff)
	}
	if !trustsName(t, c.bundles(t)[1], c.serving(t), start.Add(300*day)) {
		t.Error("the renewed certificate is not trusted")
	}
}

// After a failure of any write, the certificate in use stays trusted, and the next run completes the change.
func TestInterruptedInstallKeepsTheCertificateTrusted(t *testing.T) {
	t.Parallel()
	for _, fails := range []string{"refit-manager", "authority", "cert"} {
		t.Run(fails, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.run(t, start)
			used, now := c.serving(t), start.Add(day)
			authority := c.secret(t, "authority")
			authority.Data = nil // lost: a new authority is made
			if err := c.Update(t.Context(), authority); err != nil {
				t.Fatal(err)
			}
			c.fails = fails
			if err := Install(t.Context(), c, install, now); !errors.Is(err, errWrite) {
				t.Fatalf("got %v", err)
			}
			if !trustsName(t, c.bundles(t)[0], used, now) {
				t.Error("the certificate in use is not trusted after the failure")
			}
			c.fails = ""
			c.run(t, now)
			if !trustsName(t, c.bundles(t)[0], used, now) || !trustsName(t, c.bundles(t)[0], c.serving(t), now) {
				t.Error("old or new certificate is not trusted after the next run")
			}
		})
	}
}

func TestInstallWithoutWebhookConfigurationStillIssues(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := c.Delete(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refit-manager"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"authority", "cert"}, c.run(t, start)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func trustsName(t *testing.T, bundle []byte, serving KeyPair, now time.Time) bool {
	t.Helper()
	return len(bundle) > 0 && trusts(t, bundle, serving, now)
}
