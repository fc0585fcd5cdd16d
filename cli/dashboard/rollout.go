package dashboard

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// rollout is the page of a RestartRollout or an InPlaceUpdatePolicy, with a row for each pod.
func (s *server) rollout(ctx context.Context, of reference) (page, error) {
	switch of.kind {
	case kindRestart:
		return s.restart(ctx, of)
	case kindPolicy:
		return s.update(ctx, of)
	}
	return page{}, errNoPage
}

// podKind are the pods that a selector selects.
func podKind(namespace string, selector labels.Selector) kind {
	return kind{
		key: "pods/" + namespace + "/" + selector.String(), object: &corev1.Pod{}, list: func() client.ObjectList { return &corev1.PodList{} },
		options: []client.ListOption{client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}},
	}
}

// named is one object of a kind.
func named(of reference, object client.Object, list func() client.ObjectList) kind {
	return kind{
		key: of.kind + "/" + of.namespace + "/" + of.name, object: object, list: list,
		options: []client.ListOption{client.InNamespace(of.namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", of.name)}},
	}
}

func (s *server) restart(ctx context.Context, of reference) (page, error) {
	var object v1alpha1.RestartRollout
	if err := s.API.Get(ctx, of.key(), &object); err != nil {
		return page{}, err
	}
	selector, uid, err := s.target(ctx, &object)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return s.restartWithoutPods(of, err), nil
	}
	if err != nil {
		return page{}, err
	}
	kinds := []kind{
		restartNamed(of), podKind(of.namespace, selector),
		{
			key: "requests of " + string(object.UID), object: &v1beta1.ContainerRecreateRequest{}, list: func() client.ObjectList { return &v1beta1.ContainerRecreateRequestList{} },
			options: []client.ListOption{client.InNamespace(of.namespace), client.MatchingLabels{v1alpha1.LabelRestartRollout: string(object.UID)}},
		},
	}
	return page{name: "rollout", kinds: kinds, view: func(_ context.Context, c []*collection) (*View, error) {
		found, err := one[*v1alpha1.RestartRollout](c[0], of)
		if err != nil {
			return nil, err
		}
		view := s.restartHead(of, found)
		pods, err := objects[*corev1.Pod](c[1])
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "Pods cannot be read: "+err.Error())
		}
		pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
			return found.Spec.TargetRef != nil && !rollout.Owns(found.Spec.TargetRef, uid, pod)
		})
		if len(pods) <= maxPicture {
			view.Head.Links = []Link{{Text: "Timeline as a picture", Href: "timeline.svg" + of.query()}}
		}
		requests, err := objects[*v1beta1.ContainerRecreateRequest](c[2])
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "ContainerRecreateRequests cannot be read: "+err.Error())
		}
		view.Sections = []Section{podTable(restartStates(found, pods, requests, err == nil), c[1])}
		return view, nil
	}}, nil
}

func restartNamed(of reference) kind {
	return named(of, &v1alpha1.RestartRollout{}, func() client.ObjectList { return &v1alpha1.RestartRolloutList{} })
}

func (s *server) restartHead(of reference, object *v1alpha1.RestartRollout) *View {
	view := s.head(of, object)
	if object.Status.CompletionTime == nil {
		view.Head.Actions = s.actions(of, pauseOr(object.Spec.Paused), "abort")
	}
	return view
}

// restartWithoutPods is the page of a RestartRollout whose workload is gone, or may not be read.
func (s *server) restartWithoutPods(of reference, cause error) page {
	return page{name: "rollout", kinds: []kind{restartNamed(of)}, view: func(_ context.Context, c []*collection) (*View, error) {
		found, err := one[*v1alpha1.RestartRollout](c[0], of)
		if err != nil {
			return nil, err
		}
		view := s.restartHead(of, found)
		view.Head.Notes = []string{"Its pods are not known: " + cause.Error()}
		table := podTable(nil, c[0])
		table.Empty = unread
		view.Sections = []Section{table}
		return view, nil
	}}
}

// target returns the selector of the pods of a rollout, and the UID of its workload.
func (s *server) target(ctx context.Context, object *v1alpha1.RestartRollout) (labels.Selector, string, error) {
	if object.Spec.TargetRef == nil {
		selector, err := foreign.Selector(object.Spec.Selector)
		if err != nil {
			return nil, "", fmt.Errorf("selector of the rollout: %w", err)
		}
		return selector, "", nil
	}
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(object.Spec.TargetRef.APIVersion, object.Spec.TargetRef.Kind))
	if err := s.API.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.TargetRef.Name}, workload); err != nil {
		return nil, "", fmt.Errorf("read the workload of the rollout: %w", err)
	}
	selector, err := rollout.WorkloadSelector(workload)
	if err != nil {
		return nil, "", fmt.Errorf("read the workload of the rollout: %w", err)
	}
	return selector, string(workload.GetUID()), nil
}

// restartStates returns how far the restart of each pod is. known is false if there may be other requests.
func restartStates(object *v1alpha1.RestartRollout, pods []*corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, known bool) []policy.PodState {
	lines := map[string]status.Line{}
	for _, request := range requests {
		lines[request.Spec.PodName] = status.Describe(request)
	}
	failures := map[string]string{}
	for _, failure := range object.Status.Failures {
		failures[failure.Pod] = failure.Reason + ": " + failure.Message
	}
	states := make([]policy.PodState, 0, len(pods))
	for _, pod := range pods {
		state := policy.PodState{Pod: pod, State: "waiting"}
		line, begun := lines[pod.Name]
		switch {
		case begun:
			state.State, state.Why = line.State, line.Detail
		case !known:
			state.State = "not known"
		case object.Status.CompletionTime != nil:
			state.State = "not restarted"
		}
		if why := failures[pod.Name]; why != "" {
			state.State, state.Why = "failed", why
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b policy.PodState) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	return states
}

// reread is how old what is known about a workload and its history may be.
const reread = 10 * time.Second

func (s *server) update(ctx context.Context, of reference) (page, error) {
	config := policy.Config{API: s.API, Namespace: of.namespace, Output: console.NewOutput(io.Discard, false)}
	read := func(ctx context.Context) (*policy.Workload, error) {
		return policy.Read(ctx, config, policy.Target{Name: of.name})
	}
	workload, err := read(ctx)
	if err != nil {
		return page{}, err
	}
	last, revision := s.Now(), ""
	kinds := []kind{named(of, &v1alpha1.InPlaceUpdatePolicy{}, func() client.ObjectList { return &v1alpha1.InPlaceUpdatePolicyList{} }), podKind(of.namespace, workload.Selector())}
	return page{name: "rollout", kinds: kinds, view: func(ctx context.Context, c []*collection) (*View, error) {
		found, err := one[*v1alpha1.InPlaceUpdatePolicy](c[0], of)
		if err != nil {
			return nil, err
		}
		view := s.head(of, found)
		view.Head.Actions = s.actions(of, pauseOr(found.Spec.Paused), "promote", "undo")
		pods, err := objects[*corev1.Pod](c[1])
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "Pods cannot be read: "+err.Error())
		}
		if found.Status.UpdateRevision != revision || s.Now().Sub(last) > reread {
			if workload, err = read(ctx); err != nil {
				return nil, err
			}
			last, revision = s.Now(), found.Status.UpdateRevision
		}
		states, err := workload.States(found, pods, s.Now())
		if err != nil {
			return nil, err
		}
		view.Sections = []Section{podTable(states, c[1])}
		return view, nil
	}}, nil
}

// one returns the only object of a watch.
func one[T client.Object](c *collection, of reference) (found T, err error) {
	all, err := objects[T](c)
	for _, object := range all {
		if object.GetName() == of.name {
			return object, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s: %w", of, errMissing)
	}
	return found, err
}

func pauseOr(paused bool) string {
	if paused {
		return "resume"
	}
	return "pause"
}

// head returns a view with what status says about an object.
func (s *server) head(of reference, object client.Object) *View {
	l := status.Describe(object)
	view := &View{Head: Head{Title: l.Name, Summary: strings.TrimSuffix(fmt.Sprintf("%s of the pods of %s are done. %s: %s", l.Done, l.Target, l.State, l.Detail), ": ")}}
	for _, fact := range []Fact{
		{"Namespace", of.namespace}, {"Target", l.Target}, {"State", l.State}, {"Pods done", l.Done}, {"Requested by", l.By},
		{"Created", clock(object.GetCreationTimestamp().Time)}, {"Ended", clock(l.Ended)},
	} {
		if fact.Value != "" {
			view.Head.Facts = append(view.Head.Facts, fact)
		}
	}
	return view
}
