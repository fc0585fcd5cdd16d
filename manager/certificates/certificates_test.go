package certificates

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func TestTheCertificateIsCopiedFromItsSecret(t *testing.T) {
	t.Parallel()
	name := client.ObjectKey{Namespace: "refit-system", Name: "cert"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	secrets := fake.NewClientBuilder().WithObjects(secret).Build()
	copier := certCopier{secrets: secrets, key: name, dir: filepath.Join(t.TempDir(), "certs")}
	reconcile := func() {
		t.Helper()
		if _, err := copier.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(file string) string {
		data, _ := os.ReadFile(filepath.Join(copier.dir, file))
		return string(data)
	}

	reconcile()
	if _, err := os.Stat(filepath.Join(copier.dir, "tls.crt")); !os.IsNotExist(err) {
		t.Errorf("a certificate out of an empty secret: %v", err)
	}
	for _, round := range []string{"first", "renewed"} {
		secret.Data = map[string][]byte{"tls.crt": []byte(round + " certificate"), "tls.key": []byte(round + " key"), "ca.key": []byte("secret")}
		if err := secrets.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		reconcile()
		if read("tls.crt") != round+" certificate" || read("tls.key") != round+" key" {
			t.Errorf("%s: got %q, %q", round, read("tls.crt"), read("tls.key"))
		}
	}
	files, err := os.ReadDir(copier.dir)
	if err != nil || len(files) != 2 {
		t.Errorf("files %v, error %v; want certificate and key and nothing else", files, err)
	}
	info, err := os.Stat(filepath.Join(copier.dir, "tls.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

type startedServer struct {
	webhook.Server
	started chan struct{}
}

func (s startedServer) Start(context.Context) error {
	close(s.started)
	return nil
}

func TestTheServerWaitsForItsCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		waiting := server{certDir: dir, Server: startedServer{started: make(chan struct{})}}
		done := make(chan error, 1)
		go func() { done <- waiting.Start(t.Context()) }()
		time.Sleep(time.Hour) // of the bubble's clock
		select {
		case err := <-done:
			t.Errorf("started without a certificate: %v", err)
		default:
		}
		if err := os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-waiting.Server.(startedServer).started
	})
}

func TestAServerWithoutCertificateCanBeStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (server{certDir: dir}).Start(ctx); err != nil {
			t.Error(err)
		}
	})
}
