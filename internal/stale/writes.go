package stale

import "sync"

// Writes remembers the versions of objects after writes of this process, until its cache shows them. A decision from an
// older version would be refused by the API server as a conflict. The zero value is ready for use, and safe for
// concurrent use.
type Writes[K comparable] struct {
	mu       sync.Mutex
	versions map[K]string
}

// Wrote records the resource version of an object after a write.
func (w *Writes[K]) Wrote(key K, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[K]string{}
	}
	if !Older(version, w.versions[key]) {
		w.versions[key] = version
	}
}

// Unseen reports whether the cache has an object in an older version than the last write. The write is forgotten when it
// has not.
func (w *Writes[K]) Unseen(key K, cached string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if Older(cached, w.versions[key]) {
		return true
	}
	delete(w.versions, key)
	return false
}

// Forget forgets a deleted object.
func (w *Writes[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, key)
}
