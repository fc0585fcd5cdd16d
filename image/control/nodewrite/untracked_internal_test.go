package nodewrite

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// With hundreds of entries the record of who set which field took half of the time of each write, and the pulls of other tenants waited for it.
func TestAWriteEndsTheRecordOfWhoSetWhichField(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var sent string
	keep := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		text, err := p.Data(o)
		sent = string(text)
		if err != nil {
			return err
		}
		return c.Patch(ctx, o, p, options...)
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}).WithInterceptorFuncs(keep).Build()
	var w Writer
	err := w.Write(t.Context(), c, c, "a", func(n *v1beta1.NodeImage) bool { n.Labels = map[string]string{"a": "b"}; return true })
	if want := `{"op":"add","path":"/metadata/managedFields","value":[{}]}`; err != nil || !strings.Contains(sent, want) {
		t.Errorf("%s, %v, want %s in it", sent, err, want)
	}
}
