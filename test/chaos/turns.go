package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history"
)

const (
	turnNamespace = runLabel + "-turns"
	// probedCondition is what the probes of all turning pods bring on them.
	probedCondition = "chaos.refit.dev/up"
	statePort       = 8080
	// followTime is the judge's patience with a condition: client-go waits for 30 s at most after an outage.
	followTime = 45 * time.Second
)

// pace is how often a pod turns: at least, and how much longer at most.
type pace struct{ least, more time.Duration }

// paces: one that hardly leaves time to follow, and one at which each turn has to be followed.
var paces = []pace{{2 * time.Second, 6 * time.Second}, {followTime + 10*time.Second, 20 * time.Second}}

// askings are the handlers of probes for what a pod says.
var askings = map[string]func(file string) corev1.ProbeHandler{
	history.AskedByExec: func(file string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/testapp", "state", file}}}
	},
	"http": func(string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromInt32(statePort)}}
	},
}

// turner is a pod whose application says now this and now that of itself.
type turner struct {
	*corev1.Pod
	asked string
	pace  pace
	down  bool
}

// startTurns makes the pods and a marker for each of them: the state's file is named after the pod.
func (r *run) startTurns(ctx context.Context) ([]*turner, error) {
	if err := r.namespace(ctx, turnNamespace); err != nil {
		return nil, err
	}
	var turners []*turner
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range r.cluster.nodes {
		for asked := range askings {
			for n, pace := range paces {
				t := &turner{asked: asked, pace: pace}
				name := fmt.Sprintf("%s-%s-%d", node, asked, n)
				t.Pod = r.pod(turnNamespace, name, node, func(spec *corev1.PodSpec) {
					spec.Containers[0].Args = []string{fmt.Sprintf("--http=:%d", statePort), "--state=/signals/" + stateFile(name)}
				})
				t.Labels = map[string]string{runLabel: name}
				turners = append(turners, t)
				group.Go(func() error { return r.startTurner(ctx, t) })
			}
		}
	}
	return turners, group.Wait()
}

func stateFile(pod string) string { return pod + ".state" }

func (r *run) startTurner(ctx context.Context, t *turner) error {
	if err := r.start(ctx, t.Pod); err != nil {
		return err
	}
	if err := r.cluster.Get(ctx, client.ObjectKeyFromObject(t.Pod), t.Pod); err != nil {
		return fmt.Errorf("find pod: %w", err)
	}
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: turnNamespace, Name: t.Name}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: t.Labels}
	probe := v1alpha1.PodContainerProbe{Name: "up", ContainerName: "app", PodConditionType: probedCondition}
	probe.Probe.ProbeHandler = askings[t.asked]("/signals/" + stateFile(t.Name))
	probe.Probe.PeriodSeconds, probe.Probe.TimeoutSeconds = 1, 5
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{probe}
	if err := r.cluster.Create(ctx, marker); err != nil {
		return fmt.Errorf("create marker: %w", err)
	}
	return until(ctx, "first answer of "+t.Name, time.Minute, func(ctx context.Context) bool { return r.says(ctx, t) })
}

// says reports whether the pod's condition is what its application says.
func (r *run) says(ctx context.Context, t *turner) bool {
	want := corev1.ConditionTrue
	if t.down {
		want = corev1.ConditionFalse
	}
	var pod corev1.Pod
	return r.cluster.Get(ctx, client.ObjectKeyFromObject(t.Pod), &pod) == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == probedCondition && c.Status == want })
}

// turnLog is the record of the turns.
type turnLog struct {
	mu   sync.Mutex
	file *os.File
}

// turn changes what the pod's application says, and writes down when.
func (r *run) turn(t *turner, log *turnLog) error {
	t.down = !t.down
	name, text := r.cluster.run(t.Spec.NodeName, logFolder, stateFile(t.Name)), "up"
	if t.down {
		text = "down"
	}
	if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil { // testapp, which reads it, is another user
		return fmt.Errorf("turn %s: %w", t.Name, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("turn %s: %w", t.Name, err)
	}
	line, err := json.Marshal(history.Turn{At: time.Now(), PodUID: string(t.UID), Asked: t.asked, Up: !t.down})
	if err != nil {
		return err
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	_, err = log.file.Write(append(line, '\n'))
	return err
}

// turns turns pods until the context ends.
func (r *run) turns(ctx context.Context, turners []*turner, log *turnLog) error {
	var group errgroup.Group
	for _, t := range turners {
		choice := r.choices()
		group.Go(func() error {
			for pause(ctx, t.pace.wait(choice)) == nil {
				if err := r.turn(t, log); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (p pace) wait(choice *rand.Rand) time.Duration {
	return p.least + time.Duration(choice.Int64N(int64(p.more)))
}

// lastTurns turns each pod once more when nothing is broken, and gives the conditions the time to follow that the judge
// gives them.
func (r *run) lastTurns(ctx context.Context, turners []*turner, log *turnLog) error {
	for _, t := range turners {
		if err := r.turn(t, log); err != nil {
			return err
		}
	}
	limit := followTime + 5*time.Second
	deadline := time.Now().Add(limit)
	for _, t := range turners {
		err := until(ctx, "condition of "+t.Name, time.Until(deadline), func(ctx context.Context) bool { return r.says(ctx, t) })
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			r.journal.say("%v", err) // the judge says what it means
		}
	}
	return nil
}
