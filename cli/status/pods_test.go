package status_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/internal/table"
)

// kubectl get pods shows it as Running.
func TestPodThatAnUpdateHasLeftOutOfItsServicesIsShown(t *testing.T) {
	t.Parallel()
	pod := func(name string, gate corev1.ConditionStatus) *corev1.Pod {
		of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		of.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
		of.Status.Conditions = []corev1.PodCondition{{Type: "InPlaceUpdateReady", Status: gate, LastTransitionTime: at(-3)}}
		return of
	}
	var out bytes.Buffer
	config := status.Config{API: cluster(t, pod("left", corev1.ConditionFalse), pod("served", corev1.ConditionTrue)), Namespace: "shop", Since: time.Hour, Options: table.Options{Format: "wide"}, Now: func() time.Time { return noon }}
	if err := status.Run(t.Context(), config, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "pod/left") || !strings.Contains(text, "OutOfServices") || strings.Contains(text, "pod/served") {
		t.Errorf("%s", text)
	}
}
