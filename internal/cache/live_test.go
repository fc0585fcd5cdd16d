package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/cache/trim"
)

func TestLivePodsAreReadInPagesAndTrimmed(t *testing.T) {
	t.Parallel()
	pages := map[string]corev1.PodList{
		"":     {ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}},
		"more": {Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PodSpec{SchedulerName: "default-scheduler"}}}},
	}
	live := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			if asked.Namespace != "shop" || asked.Limit == 0 {
				return fmt.Errorf("asked for %+v", asked)
			}
			*list.(*corev1.PodList) = pages[asked.Continue]
			return nil
		},
	})
	pods, excess, err := cache.LivePods(t.Context(), live, trim.NewPods(), client.InNamespace("shop"))
	if err != nil || excess != 0 || len(pods) != 3 || pods[0].Name+pods[1].Name+pods[2].Name != "abc" || pods[2].Spec.SchedulerName != "" {
		t.Errorf("%v, %v", pods, err)
	}
}

func TestLargePodsCountWithWhatTheyHaveBeyondOrdinaryOnes(t *testing.T) {
	t.Parallel()
	large := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Annotations: map[string]string{"example.com/x": strings.Repeat("x", 200_000)}}}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}
	_, excess, err := cache.LivePods(t.Context(), fake.NewFakeClient(large, small), trim.NewPods(), client.InNamespace("shop"))
	if want := 200_000 - trim.MaxPod; err != nil || excess < want || excess > want+1000 {
		t.Errorf("%d, %v", excess, err)
	}
}

// configMaps is an API server with so many ConfigMaps, whose lists take until release is closed; nil: no time.
type configMaps struct {
	client.Reader
	n       int
	release chan struct{}

	mu      sync.Mutex
	running int
	most    int     // lists at the same time
	limits  []int64 // of the lists
}

func (c *configMaps) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	c.mu.Lock()
	c.limits = append(c.limits, asked.Limit)
	c.running++
	c.most = max(c.most, c.running)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
	}()
	if c.release != nil {
		<-c.release
	}
	first, _ := strconv.Atoi(asked.Continue)
	maps, large := list.(*corev1.ConfigMapList), strings.Repeat("x", 100<<10)
	for i := first; i < min(c.n, first+int(asked.Limit)); i++ {
		maps.Items = append(maps.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, Annotations: map[string]string{"large": large}}})
	}
	if next := first + int(asked.Limit); next < c.n {
		maps.Continue = strconv.Itoa(next)
	}
	return nil
}

func TestListsFromTheAPIServerAreReadInPages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 20, 21, 50} {
		server := &configMaps{n: n}
		var list corev1.ConfigMapList
		if err := cache.Paged(server).List(t.Context(), &list, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != n || list.Continue != "" || slices.Max(server.limits) > 20 {
			t.Errorf("%d: %d ConfigMaps, continue %q, in pages of %v", n, len(list.Items), list.Continue, server.limits)
		}
		for i, item := range list.Items {
			if item.Name != strconv.Itoa(i) || item.ManagedFields != nil || len(item.Annotations) > 0 {
				t.Errorf("%d: %+v", n, item)
			}
		}
	}
}

func TestACallerThatAsksForAPageGetsASmallerOne(t *testing.T) {
	t.Parallel()
	server := &configMaps{n: 30}
	var list corev1.ConfigMapList
	err := cache.Paged(server).List(t.Context(), &list, client.Limit(500), client.Continue("5"))
	if err != nil || len(list.Items) != 20 || list.Items[0].Name != "5" || list.Continue != "25" {
		t.Errorf("%d, %q, %v", len(list.Items), list.Continue, err)
	}
}

func TestFewPagesAreReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &configMaps{n: 50, release: make(chan struct{})}
		live := cache.Paged(server)
		var lists sync.WaitGroup
		for range 10 {
			lists.Go(func() {
				if err := live.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		waiting, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- live.List(waiting, &corev1.ConfigMapList{}) }()
		synctest.Wait()
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a list that waits and is cancelled: %v", err)
		}
		close(server.release)
		lists.Wait()
		if server.most != 2 {
			t.Errorf("%d pages at the same time", server.most)
		}
	})
}
