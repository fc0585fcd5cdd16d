package informer_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/internal/guard/informer"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
}

func bad(object any) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && strings.HasPrefix(pod.Name, "bad")
}

// Without a guard, a panic in a function that an informer calls would end the program.
func TestOnePodThatPanicsInTheInformerKeepsNoOtherFromItsHandlers(t *testing.T) {
	t.Parallel()
	source := cachetest.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	i := informer.Guard(cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{}), nil)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(i.SetTransform(func(object any) (any, error) {
		if bad(object) {
			panic("planted")
		}
		trimmed := object.(*corev1.Pod).DeepCopy()
		trimmed.Labels = nil
		return trimmed, nil
	}))
	check(i.AddIndexers(cache.Indexers{"name": func(object any) ([]string, error) {
		if bad(object) {
			panic("planted")
		}
		return []string{object.(*corev1.Pod).Name}, nil
	}}))
	seen := make(chan string, 100)
	handle := func(what string) func(any) {
		return func(object any) {
			if bad(object) {
				panic("planted")
			}
			seen <- what + " " + object.(*corev1.Pod).Name
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: handle("add"), UpdateFunc: func(_, object any) { handle("update")(object) }, DeleteFunc: handle("delete")}
	_, err := i.AddEventHandler(handler)
	check(err)
	_, err = i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
	check(err)
	_, err = i.AddEventHandlerWithResyncPeriod(handler, 0)
	check(err)
	source.Add(pod("bad"))
	source.Add(pod("web"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); i.RunWithContext(ctx) }()
	wait := func(want string) {
		t.Helper()
		for range 3 { // handlers
			if got := <-seen; got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	wait("add web")
	source.Modify(pod("bad"))
	source.Modify(pod("web"))
	wait("update web")
	if kept, found, err := i.GetStore().GetByKey("shop/bad"); !found || err != nil || kept.(*corev1.Pod).Labels["app"] != "web" {
		t.Errorf("the pod that cannot be trimmed: %v, %v", kept, err)
	}
	if list, err := i.GetIndexer().ByIndex("name", "web"); len(list) != 1 || err != nil {
		t.Errorf("by index: %v, %v", list, err)
	}
	source.Delete(pod("bad"))
	source.Delete(pod("web"))
	wait("delete web")
	cancel()
	<-ended
}
