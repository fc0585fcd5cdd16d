package turn

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube/serverclock"
)

// Connect returns a Config for this process, with a client of the API server, the server's time, and a unique name that
// begins with program.
func Connect(to *rest.Config, program string, maxUnavailable intstr.IntOrString, ignorePodDisruptionBudgets bool) (*Config, error) {
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds)); err != nil {
		return nil, err
	}
	var clock serverclock.Clock
	to = rest.CopyConfig(to)
	to.Wrap(clock.Wrap)
	api, err := client.New(to, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("make client for the API server: %w", err)
	}
	return &Config{
		API: api, By: program + " " + string(uuid.NewUUID()), MaxUnavailable: maxUnavailable, IgnorePodDisruptionBudgets: ignorePodDisruptionBudgets,
		Clock: func() time.Time { return time.Now().Add(clock.Offset()) },
	}, nil
}
