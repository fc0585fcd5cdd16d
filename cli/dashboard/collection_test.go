package dashboard

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// awaitNote reads the changes of a page until its notes have a text, or do not have it any more.
func awaitNote(t *testing.T, events <-chan string, note string, want bool) {
	t.Helper()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	for {
		select {
		case line := <-events:
			var c change
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			if c.Head != nil && strings.Contains(strings.Join(c.Head.Notes, "\n"), note) == want {
				return
			}
		case <-end.C:
			t.Fatalf("note %q: want %t", note, want)
		}
	}
}

// What it shows may be old until the API server is back.
func TestAPageSaysThatTheAPIServerRefusesItsWatches(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	streams := make(chan *watch.FakeWatcher, 100)
	s := open(t, func(c *Config) {
		c.API = interceptor.NewClient(c.API, interceptor.Funcs{Watch: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			switch _, ok := list.(*v1beta1.SidecarSetList); {
			case !ok:
				return api.Watch(ctx, list, options...)
			case refused.Load():
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			stream := watch.NewFake()
			streams <- stream
			return stream, nil
		}})
	}, shop(1)...)
	events := s.stream(t, "/stream/")
	stream := <-streams
	refused.Store(true)
	stream.Add(&v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", ResourceVersion: "9"}}) // client-go lists again after a short watch without an event
	stream.Stop()
	const note = "SidecarSets cannot be read: "
	awaitNote(t, events, note, true)
	refused.Store(false)
	awaitNote(t, events, note, false)
}
