package kubelet_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

const (
	always    = corev1.ContainerRestartPolicyAlways
	onFailure = corev1.ContainerRestartPolicyOnFailure
	never     = corev1.ContainerRestartPolicyNever
)

func exitRule(operator corev1.ContainerRestartRuleOnExitCodesOperator, values ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: values},
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	all := []int32{0, 1, 42, 137, 143}
	tests := map[string]struct {
		policy      kubelet.RestartPolicy
		restarts    []int32 // of all; the others do not restart
		restartable bool
	}{
		"Always":                   {kubelet.RestartPolicy{Policy: always}, all, true},
		"OnFailure":                {kubelet.RestartPolicy{Policy: onFailure}, []int32{1, 42, 137, 143}, true},
		"Never":                    {kubelet.RestartPolicy{Policy: never}, nil, false},
		"Never with a rule In":     {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{exitRule(in, 42)}}, []int32{42}, true},
		"Never with a rule NotIn":  {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{exitRule(notIn, 42, 0)}}, []int32{1, 137, 143}, true},
		"Never, any exit":          {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{exitRule(notIn)}}, all, true},
		"second rule matches":      {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{exitRule(in, 1), exitRule(in, 143)}}, []int32{1, 143}, true},
		"OnFailure with rule In 0": {kubelet.RestartPolicy{Policy: onFailure, Rules: []corev1.ContainerRestartRule{exitRule(in, 0)}}, all, true},
		"rule without exit codes":  {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{{Action: "Restart"}}}, nil, true},
		"operator unknown to us":   {kubelet.RestartPolicy{Policy: never, Rules: []corev1.ContainerRestartRule{exitRule("Gt", 1)}}, nil, true},
	}
	for name, tt := range tests {
		var got []int32
		for _, code := range all {
			if tt.policy.Restarts(code) {
				got = append(got, code)
			}
		}
		if !slices.Equal(got, tt.restarts) || tt.policy.Restartable() != tt.restartable {
			t.Errorf("%s: restarts after %v, restartable %v; want %v, %v", name, got, tt.policy.Restartable(), tt.restarts, tt.restartable)
		}
		if got, want := tt.policy.Always(), name == "Always"; got != want {
			t.Errorf("%s: Always = %v", name, got)
		}
	}
}

func TestRestartPolicyOf(t *testing.T) {
	t.Parallel()
	rules := []corev1.ContainerRestartRule{exitRule(corev1.ContainerRestartRuleOnExitCodesOpIn, 42)}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{
			{Name: "plain"},
			{Name: "own", RestartPolicy: new(onFailure), RestartPolicyRules: rules},
		},
		InitContainers: []corev1.Container{{Name: "setup"}, {Name: "mesh", RestartPolicy: new(always)}},
	}}
	for name, want := range map[string]struct {
		policy corev1.ContainerRestartPolicy
		rules  int
	}{
		"plain": {never, 0}, "own": {onFailure, 1}, "setup": {never, 0}, "mesh": {always, 0}, "none of this name": {never, 0},
	} {
		if got := kubelet.RestartPolicyOf(pod, name); got.Policy != want.policy || len(got.Rules) != want.rules {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := kubelet.RestartPolicyOf(&corev1.Pod{}, "app"); got.Policy != always {
		t.Errorf("pod without a policy: %q, want Always", got.Policy)
	}
}

// With a policy that does not restart the container, kubelet never changes a container that it has reported as ended.
func TestFinal(t *testing.T) {
	t.Parallel()
	ended := func(code int32) *corev1.ContainerStatus {
		return &corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	running := &corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for name, tt := range map[string]struct {
		policy corev1.ContainerRestartPolicy
		status *corev1.ContainerStatus
		want   bool
	}{
		"never reported":             {never, nil, false},
		"running":                    {never, running, false},
		"Never, ended":               {never, ended(1), true},
		"OnFailure, ended well":      {onFailure, ended(0), true},
		"OnFailure, ended with 1":    {onFailure, ended(1), false},
		"Always, between two starts": {always, ended(0), false},
	} {
		if got := (kubelet.RestartPolicy{Policy: tt.policy}).Final(tt.status); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
