package node_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPreStopHookRunsBeforeTheStop(t *testing.T) {
	t.Parallel()
	game := container("game", "")
	game.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	inWorld(t, []corev1.Container{game}, func(w *world) {
		w.change(update)
		w.pass(time.Minute)
		if w.hooks != 1 || len(w.stopped) != 1 {
			t.Errorf("%d hooks, stopped %q", w.hooks, w.stopped)
		}
	})
}
