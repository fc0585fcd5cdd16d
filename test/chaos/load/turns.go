package load

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

const (
	turnNamespace = cluster.Label + "-turns"
	// ProbedCondition is what the probes of all turning pods bring on them.
	ProbedCondition = "chaos.refit.dev/up"
	statePort       = 8080
	// FollowTime is the judge's patience with a condition while nothing is broken.
	FollowTime = 10 * time.Second
	// ReconnectTime is how long after an outage of the API server its clients may wait until they try again, as client-go does.
	ReconnectTime = 30 * time.Second
)

// pace is how often a pod turns: at least, and how much longer at most.
type pace struct{ least, more time.Duration }

// paces: one that hardly leaves time to follow, and one at which each turn has to be followed.
var paces = []pace{{2 * time.Second, 6 * time.Second}, {FollowTime + ReconnectTime + 10*time.Second, 20 * time.Second}}

// askings are the handlers of probes for what a pod says.
var askings = map[string]func(file string) corev1.ProbeHandler{
	entry.AskedByExec: func(file string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/testapp", "state", file}}}
	},
	"http": func(string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromInt32(statePort)}}
	},
}

// probePeriod is in seconds. A probe by exec starts a process of runc and one of the pod, for which a slow machine needs 0.3 s of a
// processor: once a second in four pods would be most of what two processors can do.
func probePeriod(asked string) int32 {
	if asked == entry.AskedByExec {
		return 3
	}
	return 1
}

// turner is a pod whose application reports alternating states.
type turner struct {
	*corev1.Pod
	asked string
	pace  pace
	down  bool
}

// Turns are the pods whose applications change what they report.
type Turns struct {
	cluster *cluster.Cluster
	journal *records.Journal
	choices Choices
	turners []*turner

	mu   sync.Mutex
	file *os.File
}

// StartTurns creates the pods, and a marker for each of them: the file of the state is named after the pod. The turns
// are written to the file record.
func StartTurns(ctx context.Context, c *cluster.Cluster, journal *records.Journal, choices Choices, record string) (*Turns, error) {
	file, err := os.Create(record)
	if err != nil {
		return nil, fmt.Errorf("open record of turns: %w", err)
	}
	s := &Turns{cluster: c, journal: journal, choices: choices, file: file}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the record.
func (s *Turns) Close() error { return s.file.Close() }

func (s *Turns) start(ctx context.Context) error {
	if err := s.cluster.Namespace(ctx, turnNamespace); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range s.cluster.Nodes {
		for asked := range askings {
			for n, pace := range paces {
				t := &turner{asked: asked, pace: pace}
				name := fmt.Sprintf("%s-%s-%d", node, asked, n)
				t.Pod = s.cluster.Pod(turnNamespace, name, node, func(spec *corev1.PodSpec) {
					spec.Containers[0].Args = []string{fmt.Sprintf("--http=:%d", statePort), "--state=/signals/" + stateFile(name)}
				})
				t.Labels = map[string]string{cluster.Label: name}
				s.turners = append(s.turners, t)
				group.Go(func() error { return s.startTurner(ctx, t) })
			}
		}
	}
	return group.Wait()
}

func stateFile(pod string) string { return pod + ".state" }

func (s *Turns) startTurner(ctx context.Context, t *turner) error {
	if err := s.cluster.Start(ctx, t.Pod); err != nil {
		return err
	}
	if err := s.cluster.Get(ctx, client.ObjectKeyFromObject(t.Pod), t.Pod); err != nil {
		return fmt.Errorf("find pod: %w", err)
	}
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: turnNamespace, Name: t.Name}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: t.Labels}
	probe := v1alpha1.PodContainerProbe{Name: "up", ContainerName: "app", PodConditionType: ProbedCondition}
	probe.Probe.ProbeHandler = askings[t.asked]("/signals/" + stateFile(t.Name))
	probe.Probe.PeriodSeconds, probe.Probe.TimeoutSeconds = probePeriod(t.asked), 5
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{probe}
	if err := s.cluster.Create(ctx, marker); err != nil {
		return fmt.Errorf("create marker: %w", err)
	}
	return cluster.Until(ctx, "first answer of "+t.Name, time.Minute, func(ctx context.Context) bool { return s.says(ctx, t) })
}

// says reports whether the pod's condition is what its application says.
func (s *Turns) says(ctx context.Context, t *turner) bool {
	want := corev1.ConditionTrue
	if t.down {
		want = corev1.ConditionFalse
	}
	var pod corev1.Pod
	return s.cluster.Get(ctx, client.ObjectKeyFromObject(t.Pod), &pod) == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == ProbedCondition && c.Status == want })
}

// turn changes what the pod's application says, and writes down when.
func (s *Turns) turn(t *turner) error {
	t.down = !t.down
	name, text := s.cluster.Run(t.Spec.NodeName, cluster.LogFolder, stateFile(t.Name)), "up"
	if t.down {
		text = "down"
	}
	if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil { // testapp, which reads it, is another user
		return fmt.Errorf("turn %s: %w", t.Name, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("turn %s: %w", t.Name, err)
	}
	line, err := json.Marshal(entry.Turn{At: time.Now(), PodUID: string(t.UID), Asked: t.asked, Up: !t.down})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// Run turns pods until the context ends.
func (s *Turns) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, t := range s.turners {
		choice := s.choices()
		group.Go(func() error {
			for cluster.Pause(ctx, t.pace.wait(choice)) == nil {
				if err := s.turn(t); err != nil {
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

// Last turns each pod once more when nothing is broken, and gives the conditions the time to follow that the judge
// gives them.
func (s *Turns) Last(ctx context.Context) error {
	for _, t := range s.turners {
		if err := s.turn(t); err != nil {
			return err
		}
	}
	limit := FollowTime + ReconnectTime + 5*time.Second
	deadline := time.Now().Add(limit)
	for _, t := range s.turners {
		err := cluster.Until(ctx, "condition of "+t.Name, time.Until(deadline), func(ctx context.Context) bool { return s.says(ctx, t) })
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.journal.Say("%v", err) // the judge says what it means
		}
	}
	return nil
}
