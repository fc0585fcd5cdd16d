package e2e_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// A HorizontalPodAutoscaler scales to its minReplicas without any metrics.
func TestAnAutoscalerScalesInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.follows(onePodFirst)
	w.input(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 6}
`, "apply")
	w.run("set", "image", w.ref, "app="+newImage)
	w.waitsAfterOnePod(newImage)
	w.run("patch", "hpa/web", "--type=merge", "--patch", `{"spec":{"minReplicas":5}}`)
	scaled := w.ready(5)
	if got := imagesOf(scaled); count(got, newImage) != 1 {
		t.Errorf("images after scaling up: %v; new pods have the former template", got)
	}
	w.isHeld("scaled by the autoscaler", w.stored(), 0)
	w.setsPolicy(`"steps":null`)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.keeps(scaled)
	for i := range before {
		w.same(&before[i])
	}
	if got := imagesOf(w.ready(5)); count(got, newImage) != 5 {
		t.Errorf("images at the end: %v", got)
	}
	w.isFree()
	w.rolledOut()
	w.keeps(scaled)
}
