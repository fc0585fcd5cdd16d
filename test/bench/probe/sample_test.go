package main

import "testing"

func TestRatioIsAboveIdle(t *testing.T) {
	t.Parallel()
	r := result{Idle: sample{Daemon: 0.01, Kubelet: 0.05}, Both: &sample{Daemon: 0.03, Kubelet: 0.09}}
	if n, ok := r.ratio(); !ok || n < 0.49 || n > 0.51 {
		t.Errorf("ratio %v %v", n, ok)
	}
	r.Both.Kubelet = 0.04
	if n, ok := r.ratio(); ok {
		t.Errorf("ratio %v over less than nothing", n)
	}
}
