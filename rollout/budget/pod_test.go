package budget_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
)

var now = time.Unix(1e9, 0)

// podOf is a pod that has been ready, or not, for an hour.
func podOf(ready bool, changes ...func(*corev1.Pod)) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u", Generation: 3, Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:2"}}, InitContainers: []corev1.Container{{Name: "init"}}},
		Status: corev1.PodStatus{
			ObservedGeneration: 3,
			Conditions:         []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "app:1", ImageID: "1", ContainerID: "cri://1", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func since(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago)) }
}

func state(s corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = s }
}

func waiting(reason string) func(*corev1.Pod) {
	return state(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})
}

func exited(code int32, policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = policy
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations[key] = value
		if key == v1beta1.AnnotationSidecarSetInPlaceUpdateState { // SidecarSets update only what they have injected
			pod.Annotations[v1beta1.AnnotationSidecarSetList] = "log"
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}
		}
	}
}

// begun is a record of an update of the image that was begun some time ago.
func begun(ago time.Duration) string {
	return `{"revision":"r","updateTimestamp":"` + now.Add(-ago).UTC().Format(time.RFC3339) +
		`","lastContainerStatuses":{"app":{"imageID":"1"}},"refit":{"instances":{"app":{"containerID":"cri://1","image":"app:1"}}}}`
}

// What is only not ready for a moment may be ready before its container has been stopped, so it is not for free.
func TestOnlyAPodThatCannotComeBackByItselfIsStuck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		stuck bool
		again time.Duration
	}{
		"ready":                                    {pod: podOf(true)},
		"not ready for a moment":                   {pod: podOf(false, since(4*time.Second)), again: 10*time.Minute - 4*time.Second},
		"not ready for ten minutes":                {pod: podOf(false, since(10*time.Minute)), stuck: true},
		"being created":                            {pod: podOf(false, since(time.Second), waiting("ContainerCreating")), again: 10*time.Minute - time.Second},
		"in CrashLoopBackOff":                      {pod: podOf(false, since(time.Second), waiting("CrashLoopBackOff")), stuck: true},
		"the image cannot be pulled":               {pod: podOf(false, since(time.Second), waiting("ErrImagePull")), stuck: true},
		"kubelet waits before the next pull":       {pod: podOf(false, since(time.Second), waiting("ImagePullBackOff")), stuck: true},
		"has crashed and is started again":         {pod: podOf(false, since(time.Second), exited(1, corev1.RestartPolicyAlways)), again: 10*time.Minute - time.Second},
		"has ended and is not started again":       {pod: podOf(false, since(time.Second), exited(0, corev1.RestartPolicyOnFailure)), stuck: true},
		"has failed and is started again":          {pod: podOf(false, since(time.Second), exited(1, corev1.RestartPolicyOnFailure)), again: 10*time.Minute - time.Second},
		"never started again":                      {pod: podOf(false, since(time.Second), exited(1, corev1.RestartPolicyNever)), stuck: true},
		"an init container crashes":                {pod: podOf(false, since(time.Second), initWaits), stuck: true},
		"an init container has done its work once": {pod: podOf(false, since(time.Second), func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }), again: 10*time.Minute - time.Second},
		"an init container has failed for good":    {pod: podOf(false, since(time.Second), initFailed), stuck: true},
		"kubelet has not reported a new pod":       {pod: podOf(false, unreported), again: 10*time.Minute - time.Second},
		"kubelet has not reported the pod":         {pod: podOf(false, func(pod *corev1.Pod) { pod.Status = corev1.PodStatus{} }), stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, again := observe(t, tt.pod, nil, 0, now)
			if got.Stuck != tt.stuck {
				t.Errorf("stuck %t, want %t", got.Stuck, tt.stuck)
			}
			if got.Stuck && !again.IsZero() {
				t.Errorf("again at %s although it stays so", again)
			}
			if tt.again != 0 && !again.Equal(now.Add(tt.again)) {
				t.Errorf("again in %s, want %s", again.Sub(now), tt.again)
			}
		})
	}
}

func initWaits(pod *corev1.Pod) {
	pod.Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}

func initFailed(pod *corev1.Pod) {
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
}

func unreported(pod *corev1.Pod) {
	pod.CreationTimestamp, pod.Status = metav1.NewTime(now.Add(-time.Second)), corev1.PodStatus{}
}

func TestWhateverIsUnderWayOnAPodMakesItUnavailableWhoeverHasBegunIt(t *testing.T) {
	t.Parallel()
	request := func(pod, uid string, phase v1beta1.ContainerRecreateRequestPhase) []*v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{Spec: v1beta1.ContainerRecreateRequestSpec{PodName: pod}}
		if uid != "" {
			r.Labels = map[string]string{v1beta1.LabelPodUID: uid}
		}
		r.Status.Phase = phase
		return []*v1beta1.ContainerRecreateRequest{r}
	}
	// stopping is a request whose container is still being stopped for it, although it has ended or been deleted.
	stopping := func(instance string, change func(*v1beta1.ContainerRecreateRequest)) []*v1beta1.ContainerRecreateRequest {
		r := request("web-0", "u", v1beta1.ContainerRecreateRequestRecreating)
		r[0].Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", ContainerID: instance, Phase: v1beta1.ContainerRecreateRequestRecreating}}
		change(r[0])
		return r
	}
	end := func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.Phase, r.Status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &metav1.Time{Time: now}
	}
	deleted := func(r *v1beta1.ContainerRecreateRequest) { r.DeletionTimestamp = &metav1.Time{Time: now} }
	ready := func(changes ...func(*corev1.Pod)) *corev1.Pod { return podOf(true, changes...) }
	for name, tt := range map[string]struct {
		pod      *corev1.Pod
		requests []*v1beta1.ContainerRecreateRequest
		underWay bool
	}{
		"nothing":                               {pod: ready()},
		"a request":                             {pod: ready(), requests: request("web-0", "u", v1beta1.ContainerRecreateRequestPending), underWay: true},
		"a request that nobody has looked at":   {pod: ready(), requests: request("web-0", "", ""), underWay: true},
		"a request that has ended":              {pod: ready(), requests: request("web-0", "u", v1beta1.ContainerRecreateRequestCompleted)},
		"one that failed, and its stop goes on": {pod: ready(), requests: stopping("cri://1", end), underWay: true},
		"a grace period of ten minutes goes on": {pod: ready(func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(600)) }), requests: stopping("cri://1", func(r *v1beta1.ContainerRecreateRequest) {
			end(r)
			r.Status.CompletionTime = &metav1.Time{Time: now.Add(-5 * time.Minute)}
		}), underWay: true},
		"one that failed, and the container is another": {pod: ready(), requests: stopping("cri://0", end)},
		"one that was deleted, and its stop goes on":    {pod: ready(), requests: stopping("cri://1", deleted), underWay: true},
		"one that was deleted before it stopped any":    {pod: ready(), requests: stopping("", deleted)},
		"a request for the pod before":                  {pod: ready(), requests: request("web-0", "other", v1beta1.ContainerRecreateRequestPending)},
		"a request for another pod":                     {pod: ready(), requests: request("web-1", "", v1beta1.ContainerRecreateRequestPending)},
		"a change that kubelet has not seen":            {pod: ready(func(pod *corev1.Pod) { pod.Generation = 4 }), underWay: true},
		"a kubelet that does not report it":             {pod: ready(func(pod *corev1.Pod) { pod.Generation, pod.Status.ObservedGeneration = 4, 0 })},
		"an update":                                     {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, begun(time.Minute))), underWay: true},
		"an update of a SidecarSet":                     {pod: ready(annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState, `{"log":`+begun(time.Minute)+`}`)), underWay: true},
		"a record from long ago":                        {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, begun(10*time.Minute)))},
		"a record from the year 9999":                   {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, strings.Replace(begun(0), "2001", "9999", 1)))},
		"a record from twenty minutes ahead":            {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, begun(-20*time.Minute)))},
		"an image that is still to be written":          {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, pending(""))), underWay: true},
		"a record without a time":                       {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, `{"lastContainerStatuses":{"app":{"imageID":"1"}}}`))},
		"a record that cannot be read":                  {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, `{`), annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState, `[]`))},
		"one of two records cannot be read":             {pod: ready(annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState, `{"a":1,"log":`+begun(time.Minute)+`}`)), underWay: true},
		"an update that has ended":                      {pod: ready(annotated(v1beta1.AnnotationInPlaceUpdateState, begun(time.Minute)), instance("cri://2")), underWay: false},
		"somebody's turn to take it out":                {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, claim(now, true))), underWay: true},
		"somebody waits for the turn":                   {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, claim(now, false)))},
		"the turn of a process that has died":           {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, claim(now.Add(-time.Minute), true)))},
		"a turn for ever":                               {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, claim(now.Add(time.Hour), true)))},
		"a turn in a claim that is too long":            {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, strings.Replace(claim(now, true), "somebody", strings.Repeat("s", 200), 1)))},
		"a turn in the longest claim":                   {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, longest(claim(now, true)))), underWay: true},
		"a turn of which a part cannot be read":         {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, strings.Replace(claim(now, true), `"somebody"`, "1", 1)))},
		"a turn that cannot be read":                    {pod: ready(annotated(v1beta1.AnnotationDisruptionClaim, `{"holding":1}`))},
		"a pod that is being deleted is going":          {pod: ready(func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }), underWay: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := observe(t, tt.pod, tt.requests, 0, now)
			if got.UnderWay != tt.underWay || got.Available == tt.underWay {
				t.Errorf("under way %t, available %t", got.UnderWay, got.Available)
			}
		})
	}
}

func TestAPodThatIsBeingDeletedDoesNotServe(t *testing.T) {
	t.Parallel()
	if p, _ := observe(t, podOf(true, func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }), nil, 0, now); p.Ready {
		t.Errorf("%+v", p)
	}
}

// Others may go first then: the command of the user has to be run again before anything happens.
func TestOnlyTheNextWriteOfACommandIsLeftToAUser(t *testing.T) {
	t.Parallel()
	const own, others = v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationSidecarSetInPlaceUpdateState
	for name, tt := range map[string]struct {
		annotations map[string]string
		left        bool
	}{
		"what kubelet does goes on":               {annotations: map[string]string{own: begun(time.Minute)}},
		"the next write of a command":             {annotations: map[string]string{own: pending(`"refit":{},`)}, left: true},
		"of OpenKruise":                           {annotations: map[string]string{own: pending("")}},
		"of a SidecarSet":                         {annotations: map[string]string{others: `{"log":` + pending(`"refit":{},`) + `}`}},
		"of a command, and a SidecarSet goes on":  {annotations: map[string]string{own: pending(`"refit":{},`), others: `{"log":` + begun(time.Minute) + `}`}},
		"of a command, and a SidecarSet has done": {annotations: map[string]string{own: pending(`"refit":{},`), others: `{"log":` + begun(time.Hour) + `}`}, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(true)
			pod.Annotations = tt.annotations
			if p, _ := observe(t, pod, nil, 0, now); !p.UnderWay || p.Left != tt.left {
				t.Errorf("under way %t, left %t", p.UnderWay, p.Left)
			}
		})
	}
}

// pending is the record of an update of which the next image has not been written.
func pending(more string) string {
	return `{"revision":"r",` + more + `"updateTimestamp":"` + now.Add(-time.Minute).UTC().Format(time.RFC3339) + `","nextContainerImages":{"app":"app:3"}}`
}

// longest fills a claim up to what is read of one.
func longest(claim string) string {
	return strings.Replace(claim, "somebody", strings.Repeat("s", 256-len(claim)+len("somebody")), 1)
}

func TestASidecarSetKnowsItsOwnUpdates(t *testing.T) {
	t.Parallel()
	pod := podOf(true, annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState, `{"log":`+begun(time.Minute)+`}`))
	for name, want := range map[string]bool{"log": false, "audit": true, "": true} {
		if p, _ := budget.ObserveBeside(name, pod, nil, 0, now); p.UnderWay != want {
			t.Errorf("%q: under way %t", name, p.UnderWay)
		}
	}
}

// claim is the annotation of a process that waits to take the pod out, or may do so.
func claim(at time.Time, holding bool) string {
	c := budget.NewClaim("somebody", at)
	c.Holding = holding
	return c.String()
}

// instance says that the container is another instance, with the image of the spec.
func instance(id string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		status := &pod.Status.ContainerStatuses[0]
		status.ContainerID, status.Image, status.ImageID = id, "app:2", "2"
	}
}

func TestAPodIsAvailableWhenItHasBeenReadyForLongEnough(t *testing.T) {
	t.Parallel()
	p, again := observe(t, podOf(true, since(4*time.Second)), nil, 10*time.Second, now)
	if !p.Ready || p.Available || !again.Equal(now.Add(6*time.Second)) {
		t.Errorf("%+v, again in %s", p, again.Sub(now))
	}
	if p, _ = observe(t, podOf(true, since(10*time.Second)), nil, 10*time.Second, now); !p.Available {
		t.Errorf("%+v", p)
	}
	if p, _ = observe(t, podOf(true, since(-time.Hour)), nil, 0, now); !p.Available { // the clock of the node is ahead
		t.Errorf("without a time: %+v", p)
	}
}

// The end of the grace period changes no object, so nothing else would cause another look.
func TestAPodWhoseStopOutlivesItsRequestIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	request := &v1beta1.ContainerRecreateRequest{Spec: v1beta1.ContainerRecreateRequestSpec{PodName: "web-0"}}
	request.Status = v1beta1.ContainerRecreateRequestStatus{
		Phase: v1beta1.ContainerRecreateRequestCompleted, CompletionTime: &metav1.Time{Time: now},
		ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", ContainerID: "cri://1", Phase: v1beta1.ContainerRecreateRequestFailed}},
	}
	p, again := observe(t, podOf(true), []*v1beta1.ContainerRecreateRequest{request}, 0, now)
	if !p.UnderWay || !again.After(now) || again.After(now.Add(10*time.Second)) {
		t.Errorf("under way %t, again after %s", p.UnderWay, again.Sub(now))
	}
}
