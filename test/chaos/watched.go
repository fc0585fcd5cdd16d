package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

// watcher writes down what a client of the cluster sees of workloads and their Services.
type watcher struct {
	client.WithWatch
	mu   sync.Mutex
	file *os.File
}

// watchServices watches until the context ends. A watch that breaks is begun again, with all objects that there are.
func (r *run) watchServices(ctx context.Context) error {
	config := rest.CopyConfig(r.cluster.Config)
	config.Timeout = 0 // of a watch too
	api, err := client.NewWithWatch(config, client.Options{Scheme: r.cluster.Scheme()})
	if err != nil {
		return fmt.Errorf("connect to watch: %w", err)
	}
	file, err := os.Create(r.record(records.Watched))
	if err != nil {
		return fmt.Errorf("open record of watches: %w", err)
	}
	w := &watcher{WithWatch: api, file: file}
	group, inner := errgroup.WithContext(ctx)
	for kind, list := range map[string]client.ObjectList{
		entry.KindEndpointSlice: &discoveryv1.EndpointSliceList{}, entry.KindBudget: &policyv1.PodDisruptionBudgetList{},
		entry.KindWorkload: &appsv1.DeploymentList{}, entry.KindStatefulSet: &appsv1.StatefulSetList{}, entry.KindDaemonSet: &appsv1.DaemonSetList{},
	} {
		group.Go(func() error {
			for inner.Err() == nil {
				err := w.follow(inner, kind, list)
				if inner.Err() != nil {
					return nil
				}
				if err != nil {
					return err
				}
				_ = cluster.Pause(inner, time.Second)
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), file.Close())
}

// follow writes down what there is, and what changes until the watch breaks. The error is of the record.
func (w *watcher) follow(ctx context.Context, kind string, list client.ObjectList) error {
	limited, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	if w.List(limited, list) != nil {
		return nil // an outage
	}
	err := meta.EachListItem(list, func(object runtime.Object) error { return w.write(string(watch.Added), kind, object) })
	if err != nil {
		return err
	}
	empty := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
	changes, err := w.Watch(ctx, empty, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return w.write(entry.WatchLost, kind, nil)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		if event.Type == watch.Error || event.Type == watch.Bookmark {
			continue
		}
		if err := w.write(string(event.Type), kind, event.Object); err != nil {
			return err
		}
	}
	return w.write(entry.WatchLost, kind, nil)
}

// write leaves out what is not of the run.
func (w *watcher) write(event, kind string, object runtime.Object) error {
	line := entry.WatchedLine{Event: event, Kind: kind}
	if object != nil {
		if namespaced, err := meta.Accessor(object); err != nil || !strings.HasPrefix(namespaced.GetNamespace(), cluster.Label) {
			return nil //nolint:nilerr // it is none of the kind
		}
		text, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("write record of watches: %w", err)
		}
		line.Object = text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	line.At = time.Now()
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("write record of watches: %w", err)
	}
	if _, err := w.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write record of watches: %w", err)
	}
	return nil
}
