package secretcopy

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestCopyOfAPullSecretNamesNoMoreJobsThanAnAnnotationHolds(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{}
	for i := range 200 {
		refer(secret, &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.Repeat("j", 250) + strconv.Itoa(i)}})
	}
	if size := len(secret.Annotations[v1beta1.AnnotationPullSecretReferences]); size > 100*320 || len(references(secret)) != 100 {
		t.Errorf("%d jobs, %d bytes", len(references(secret)), size)
	}
}
