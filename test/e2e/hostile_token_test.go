package e2e_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// stolen are clients with the tokens of programs: of the refit-daemon of the victim's node, of one on no node, of refit-manager and of the
// certificates Job.
type stolen struct {
	daemon, noDaemon, manager, certificates client.Client
	// sidecar is a client with the token of the sidecar of a pod.
	sidecar func(context.Context, *corev1.Pod) (client.Client, error)
}

// steal creates tokens, as kubelet mounts them into the pods of the programs, and the account of sidecars in the namespace of the attacker.
func (s *sidecarFixture) steal(node, namespace string) stolen {
	s.t.Helper()
	out, err := s.kubectl(s.t.Context(), s.example("10-rbac.yaml"), "apply", "--namespace", namespace, "--filename", "-")
	s.check(err, "apply the account of sidecars: %s", out)
	of := func(account string, pod *corev1.Pod) client.Client {
		return s.as(s.token(systemNamespace, account, pod))
	}
	return stolen{
		daemon: of("refit-daemon", s.daemonOn(node)), noDaemon: of("refit-daemon", nil), manager: of("refit-manager", nil),
		certificates: of("refit-certificates", nil),
		sidecar: func(ctx context.Context, pod *corev1.Pod) (client.Client, error) {
			token, err := s.createToken(ctx, pod.Namespace, pod.Spec.ServiceAccountName, pod)
			if err != nil {
				return nil, fmt.Errorf("create the token of a sidecar: %w", err)
			}
			return s.client(token)
		},
	}
}

// asSidecar is an attacker with the token of the sidecar of a pod of its own, which runs on no node.
func (a attacker) asSidecar(ctx context.Context) (client.Client, *corev1.Pod, error) {
	pod := a.pod()
	pod.Labels, pod.Spec.ServiceAccountName = nil, "refit-sidecar"
	if err := a.Create(ctx, pod); err != nil {
		return nil, nil, fmt.Errorf("create the pod of a sidecar: %w", err)
	}
	c, err := a.stolen.sidecar(ctx, pod)
	return c, pod, err
}

// takes makes a write that the API server has to take: one that is refused would show nothing about the programs.
func (a attacker) takes(ctx context.Context, what string, write func(context.Context) error) error {
	if err := a.answered(ctx, write); err != nil {
		return fmt.Errorf("%w: %s was not taken: %s", errWrong, what, err.Error())
	}
	return nil
}

// refused is one write, with words of its refusal.
func refused(write func(context.Context, attacker) error, words ...string) attack {
	return attack{words: words, do: func(ctx context.Context, a attacker) error {
		return a.answered(ctx, func(ctx context.Context) error { return write(ctx, a) })
	}}
}

// bySidecar is one write with the token of a sidecar, with words of its refusal. Without words it has to be taken.
func bySidecar(write func(ctx context.Context, a attacker, sidecar client.Client, pod *corev1.Pod) error, words ...string) attack {
	return attack{words: words, do: func(ctx context.Context, a attacker) error {
		sidecar, pod, err := a.asSidecar(ctx)
		if err != nil {
			return err
		}
		one := func(ctx context.Context) error { return write(ctx, a, sidecar, pod) }
		if len(words) == 0 {
			return a.takes(ctx, "what a sidecar may write", one)
		}
		return a.answered(ctx, one)
	}}
}

// statusOfVictim and victimItself patch the other tenant's pod that no canary touches.
func statusOfVictim(program func(stolen) client.Client, patch string, words ...string) attack {
	return refused(func(ctx context.Context, a attacker) error {
		return program(a.stolen).Status().Patch(ctx, a.victim.DeepCopy(), merge(patch))
	}, words...)
}

func victimItself(program func(stolen) client.Client, patch string, words ...string) attack {
	return refused(func(ctx context.Context, a attacker) error {
		return program(a.stolen).Patch(ctx, a.victim.DeepCopy(), merge(patch))
	}, words...)
}

func deletesVictim(program func(stolen) client.Client) attack {
	return refused(func(ctx context.Context, a attacker) error { return program(a.stolen).Delete(ctx, a.victim.DeepCopy()) }, "cannot delete")
}

// createsPod is the creation of a pod in the namespace of the other tenant.
func createsPod(program func(stolen) client.Client) attack {
	return refused(func(ctx context.Context, a attacker) error {
		pod := a.pod()
		pod.Namespace = a.other
		return program(a.stolen).Create(ctx, pod)
	}, "cannot create")
}

func listsSecrets(program func(stolen) client.Client, namespace func(attacker) string) attack {
	return refused(func(ctx context.Context, a attacker) error {
		return program(a.stolen).List(ctx, &corev1.SecretList{}, client.InNamespace(namespace(a)))
	}, "cannot list")
}

func ofTheOther(a attacker) string { return a.other }

func ofTheSystem(attacker) string { return systemNamespace }

// hostileText is what no bound, no encoding and no parser expects: bytes many, right to left, and no JSON.
func hostileText(bytes int) string {
	return "\u202e\U0001F4A3{{{" + strings.Repeat("[", bytes)
}

// aboutPod is an Event as a program creates it, with a text of 100 kB.
func aboutPod(pod *corev1.Pod, host string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: "a-"}, Reason: "Hostile", Message: hostileText(100 << 10), Type: corev1.EventTypeNormal,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Source:         corev1.EventSource{Component: "refit-daemon", Host: host}, ReportingController: "refit-daemon", ReportingInstance: host,
	}
}

// strategic merges conditions by their types.
func strategic(patch string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(patch))
}

// farAway is a condition of a probe or a sidecar from the year 9999, in a JSON text.
func farAway(kind string) string {
	return fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":"X","message":%q,"lastTransitionTime":"9999-12-31T23:59:59Z"}]}}`, kind, strings.Repeat("x", 100<<10))
}

// nodeImage is the NodeImage of the victim's node.
func (a attacker) nodeImage() *v1beta1.NodeImage {
	return &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: a.victim.Spec.NodeName}}
}
