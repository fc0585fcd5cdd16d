package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// daemonOn is the pod of the daemon on a node.
func (s *fixture) daemonOn(node string) *corev1.Pod {
	s.t.Helper()
	var pods corev1.PodList
	s.check(s.List(s.t.Context(), &pods, append(daemonPods(), client.MatchingFields{"spec.nodeName": node})...), "find daemon")
	if len(pods.Items) != 1 {
		s.t.Fatalf("%d daemons on node %s", len(pods.Items), node)
	}
	return &pods.Items[0]
}

// tokenLasts is how long a token is valid: longer than make hostile, whose tenant has one from the beginning to the end.
const tokenLasts = 4 * time.Hour

// token of a service account, bound to a pod unless that is nil: the same that kubelet mounts into the pod.
func (s *fixture) token(namespace, account string, pod *corev1.Pod) string {
	s.t.Helper()
	token, err := s.createToken(s.t.Context(), namespace, account, pod)
	s.check(err, "make token of %s", account)
	return token
}

// createToken is token for those who may not end the test.
func (s *fixture) createToken(ctx context.Context, namespace, account string, pod *corev1.Pod) (string, error) {
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLasts.Seconds()))}}
	if pod != nil {
		ask.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	err := s.SubResource("token").Create(ctx, of, ask)
	return ask.Status.Token, err
}

// as is a client with that token.
func (s *fixture) as(token string) client.Client {
	s.t.Helper()
	c, err := s.client(token)
	s.check(err, "make client")
	return c
}

// client is as for those who may not end the test.
func (s *fixture) client(token string) (client.Client, error) {
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token
	return client.New(config, client.Options{Scheme: s.Scheme(), Mapper: s.RESTMapper()})
}

func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// TestDaemonMayWriteOnlyWhatConcernsItsNode plays a daemon that has been taken over: its token against the API server.
func TestDaemonMayWriteOnlyWhatConcernsItsNode(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsTwoNodes(t)
	mine := s.start(on(s.nodes[0], s.podOf("mine", shell("app", obedient))))
	others := s.start(on(s.nodes[1], s.podOf("others", shell("app", obedient))))
	s.ask("mine", "mine/app")
	s.ask("others", "others/app")
	myRequest, otherRequest := s.succeeded("mine"), s.succeeded("others")
	bound := s.as(s.token(systemNamespace, "refit-daemon", s.daemonOn(s.nodes[0])))
	unbound := s.as(s.token(systemNamespace, "refit-daemon", nil))

	note := merge(`{"status":{"message":"by hand"}}`)
	nudge := merge(`{"metadata":{"annotations":{"refit.dev/nudge":"now"}}}`)
	status := func(c client.Client, object client.Object, patch client.Patch) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Status().Patch(ctx, object.DeepCopyObject().(client.Object), patch)
		}
	}
	object := func(c client.Client, object client.Object, patch client.Patch) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, object.DeepCopyObject().(client.Object), patch)
		}
	}
	event := func(host string, about corev1.ObjectReference) func(context.Context) error {
		return func(ctx context.Context) error {
			return bound.Create(ctx, &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, GenerateName: "e-"}, InvolvedObject: about, Reason: "Test", Message: "test", Type: "Normal",
				Source: corev1.EventSource{Component: "refit-daemon", Host: host}, ReportingController: "refit-daemon", ReportingInstance: host,
			})
		}
	}
	minePod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.namespace, Name: "mine"}
	otherNode := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Namespace: "default", Name: s.nodes[1]}
	const policy = "ValidatingAdmissionPolicy"
	checkAccess(t, map[string]access{
		"status of a request of its node":       {do: status(bound, myRequest, note)},
		"status of a request of another node":   {do: status(bound, otherRequest, note), words: []string{policy, s.nodes[1]}},
		"status of a request, token of no node": {do: status(unbound, myRequest, note), words: []string{policy}},
		"record in a request of its node":       {do: object(bound, myRequest, merge(`{"metadata":{"annotations":{"refit.dev/instances":"{}"}}}`))},
		"record in a request of another node":   {do: object(bound, otherRequest, merge(`{"metadata":{"annotations":{"refit.dev/instances":"{}"}}}`)), words: []string{policy, s.nodes[1]}},
		"record in a request, not by a daemon":  {do: object(s, myRequest, merge(`{"metadata":{"annotations":{"refit.dev/instances":"{\"app\":\"containerd://x\"}"}}}`)), words: []string{policy, "only refit-daemon may write"}},
		"another annotation of a request":       {do: object(bound, myRequest, merge(`{"metadata":{"annotations":{"a":"b"}}}`)), words: []string{policy, "nothing of a ContainerRecreateRequest but"}},
		"label of a request":                    {do: object(bound, myRequest, merge(`{"metadata":{"labels":{"a":"b"}}}`)), words: []string{policy, "nothing of a ContainerRecreateRequest but"}},
		"finalizer of a request":                {do: object(bound, myRequest, merge(`{"metadata":{"finalizers":["a.b/c"]}}`)), words: []string{policy, "nothing of a ContainerRecreateRequest but"}},
		"deleting a request":                    {do: func(ctx context.Context) error { return bound.Delete(ctx, myRequest.DeepCopy()) }, words: []string{"cannot delete"}},
		"Event of its node":                     {do: event(s.nodes[0], minePod)},
		"Event in the name of another node":     {do: event(s.nodes[1], minePod), words: []string{policy, "in the name of node"}},
		"Event about another node":              {do: event(s.nodes[0], otherNode), words: []string{policy, "about another node"}},
		"nudge of a pod of its node":            {do: status(bound, mine, nudge)},
		"nudge of a pod of another node":        {do: status(bound, others, nudge), words: []string{policy, s.nodes[1]}},
		"nudge of a pod, token of no node":      {do: status(unbound, mine, nudge), words: []string{policy}},
		"another annotation of a pod":           {do: status(bound, mine, merge(`{"metadata":{"annotations":{"a":"b"}}}`)), words: []string{policy, "nothing of a pod but"}},
		"label of a pod":                        {do: status(bound, mine, merge(`{"metadata":{"labels":{"a":"b"}}}`)), words: []string{policy, "nothing of a pod but"}},
		"finalizer of a pod":                    {do: status(bound, mine, merge(`{"metadata":{"finalizers":["a.b/c"]}}`)), words: []string{policy}},
		"status of a pod":                       {do: status(bound, mine, merge(`{"status":{"message":"x"}}`)), words: []string{policy, "nothing of a pod but"}},
		"deadline of a pod":                     {do: object(bound, mine, merge(`{"spec":{"activeDeadlineSeconds":1}}`)), words: []string{"cannot patch"}},
		"deleting a pod":                        {do: func(ctx context.Context) error { return bound.Delete(ctx, mine.DeepCopy()) }, words: []string{"cannot delete"}},
		"making a pod":                          {do: func(ctx context.Context) error { return bound.Create(ctx, s.podOf("new", shell("app", obedient))) }, words: []string{"cannot create"}},
		"reading secrets":                       {do: func(ctx context.Context) error { return bound.List(ctx, &corev1.SecretList{}) }, words: []string{"cannot list"}},
		"reading secrets of its own namespace": {do: func(ctx context.Context) error {
			return bound.List(ctx, &corev1.SecretList{}, client.InNamespace(systemNamespace))
		}, words: []string{"cannot list"}},
		"making a request for a container": {do: func(ctx context.Context) error { return bound.Create(ctx, s.newRequest("new", "mine/app")) }, words: []string{"cannot create"}},
		"making itself a token of another daemon": {do: func(ctx context.Context) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "refit-daemon"}}
			return bound.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}, words: []string{"cannot create"}},
	})
}

// TestUsersNeedARoleForRequests checks the two roles for users: who may view a namespace may not restart in it.
func TestUsersNeedARoleForRequests(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient)))
	for role, may := range map[string]map[string]string{
		"view": {"get": "yes", "list": "yes", "create": "no", "delete": "no", "update": "no"},
		"edit": {"get": "yes", "list": "yes", "create": "yes", "delete": "yes", "update": "yes"},
	} {
		s.run("create", "rolebinding", role, "--clusterrole="+role, "--user="+role+"-"+s.namespace)
		for verb, want := range may {
			// Roles are aggregated a moment after they were made.
			s.await(role+" "+verb+": "+want, func(ctx context.Context) (bool, error) {
				out, _ := s.kubectl(ctx, "", "--namespace", s.namespace, "auth", "can-i", verb, "containerrecreaterequests.apps.kruise.io", "--as="+role+"-"+s.namespace)
				return strings.TrimSpace(out) == want, nil
			})
		}
	}
	out, err := s.kubectl(t.Context(), "", "--namespace", s.namespace, "auth", "can-i", "patch", "containerrecreaterequests.apps.kruise.io", "--subresource=status", "--as=edit-"+s.namespace)
	if err == nil || strings.TrimSpace(out) != "no" {
		t.Errorf("edit may patch the status: %s", out)
	}
}
