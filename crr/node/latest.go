package node

import (
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/identity"
)

// indexPod is the name of the index of requests by the pod they were admitted for.
const indexPod = "pod"

// podOf returns the pod of a request. It uses the UID from admission, so that requests for a pod are kept apart from
// requests for a later pod with the same name, for example of a StatefulSet.
func podOf(request *crr.Request) identity.Pod {
	return identity.Pod{Namespace: request.Namespace, Name: request.Spec.PodName, UID: request.Labels[v1beta1.LabelPodUID]}
}

func podIndexKey(key identity.Pod) string { return key.Namespace + "/" + key.Name + "/" + key.UID }

func indexByPod(object any) ([]string, error) {
	request, ok := object.(*crr.Request)
	if !ok {
		return nil, nil
	}
	return []string{podIndexKey(podOf(request))}, nil
}

// latest reads the cache of active requests, and replaces entries by our own newer writes that the watch has not
// delivered yet. It keeps a write until the watch has delivered it, or until the request has left the cache.
type latest struct {
	cache cache.Indexer

	mu     sync.Mutex
	writes map[types.UID]*crr.Request
}

func newLatest(indexer cache.Indexer) *latest {
	return &latest{cache: indexer, writes: map[types.UID]*crr.Request{}}
}

// ofPod returns the requests of a pod.
func (l *latest) ofPod(key identity.Pod) ([]*crr.Request, error) {
	objects, err := l.cache.ByIndex(indexPod, podIndexKey(key))
	if err != nil {
		return nil, fmt.Errorf("look up requests: %w", err)
	}
	requests := make([]*crr.Request, 0, len(objects))
	for _, object := range objects {
		if request, ok := object.(*crr.Request); ok {
			requests = append(requests, l.newer(request))
		}
	}
	return requests, nil
}

// get returns the current version of the request, or nil if it has been deleted or is no longer active.
func (l *latest) get(request *crr.Request) *crr.Request {
	if cached := l.cached(request); cached != nil {
		return l.newer(cached)
	}
	return nil
}

func (l *latest) cached(request *crr.Request) *crr.Request {
	object, found, err := l.cache.GetByKey(request.Namespace + "/" + request.Name)
	cached, ok := object.(*crr.Request)
	if err != nil || !found || !ok || cached.UID != request.UID {
		return nil
	}
	return cached
}

func (l *latest) newer(cached *crr.Request) *crr.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if write := l.writes[cached.UID]; write != nil && version(write) > version(cached) {
		cached = write
	}
	return record.Apply(cached)
}

// wrote stores our own write.
func (l *latest) wrote(stored *crr.Request) {
	l.mu.Lock()
	l.writes[stored.UID] = stored
	l.mu.Unlock()
	if cached := l.cached(stored); cached == nil || version(cached) >= version(stored) { // the watch has delivered it already
		l.forget(stored.UID)
	}
}

// seen must be called with every request from the watch. It reports whether it is our own write, which brings nothing new.
func (l *latest) seen(request *crr.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	write := l.writes[request.UID]
	if write == nil {
		return false
	}
	if version(request) >= version(write) {
		delete(l.writes, request.UID)
	}
	return request.ResourceVersion == write.ResourceVersion
}

func (l *latest) forget(request types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.writes, request)
}

// version returns the resource version of a request as a number, to compare versions of the same request (KEP-5504).
func version(request *crr.Request) uint64 {
	number, err := strconv.ParseUint(request.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
