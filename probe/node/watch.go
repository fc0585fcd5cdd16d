package node

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// follow calls changed for each object of a cache that is added, changed or deleted. If an object was replaced by
// another object with the same name while the watch was interrupted, changed is called for a deletion and an addition.
// The returned function returns true after changed has been called for all initial objects of the cache.
func follow[T metav1.Object](informer cache.SharedIndexInformer, changed func(object T, deleted bool)) (cache.InformerSynced, error) {
	handle := func(object any, deleted bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if object, ok := object.(T); ok {
			changed(object, deleted)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { handle(object, false) },
		UpdateFunc: func(before, object any) {
			was, wasOne := before.(T)
			if is, isOne := object.(T); wasOne && isOne && was.GetUID() != is.GetUID() {
				handle(before, true)
			}
			handle(object, false)
		},
		DeleteFunc: func(object any) { handle(object, true) },
	})
	if err != nil {
		return nil, err
	}
	return handler.HasSynced, nil
}

// pod returns the pod, or nil if the node has none with this name.
func (m *Manager) pod(namespace, name string) *corev1.Pod {
	object, found, err := m.config.Pods.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}
