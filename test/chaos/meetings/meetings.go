// Package meetings makes things meet on the pods of a workload: restarts with pods that are young or not ready for a moment, several
// rollouts and SidecarSets at once, stops that outlive what began them, budgets that allow nothing, and templates that change again and
// back while pods follow them in place. Each meeting has a namespace and a workload with a Service of its own, which are gone when it is over.
package meetings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
)

const (
	// rolloutTime is the wait for one rollout. The judge says what it means that it takes longer.
	rolloutTime = 150 * time.Second
	// endTime is how long a meeting tries to end: longer than most outages of the API server.
	endTime = time.Minute
)

// Meetings are made one after the other, in each lane.
type Meetings struct {
	cluster *cluster.Cluster
	journal *records.Journal
	choices func() *rand.Rand
	deals   chan deal
	folder  string
	tool    func() (string, error) // path of the command that users give

	mu         sync.Mutex
	unfinished []*stage // of meetings that could not end
}

// deal is a meeting with its number in the run.
type deal struct {
	number int
	meeting
}

// meeting is one kind.
type meeting struct {
	name string
	play func(context.Context, *stage) error
}

// ordered is the meeting in which a user gives commands.
const ordered = "orders"

// kinds are all of them.
func kinds() []meeting {
	return []meeting{
		{"young", young}, {"blip", blip}, {"sets", sets}, {"budget", budget}, {"failed", failed}, {"deadline", deadline},
		{"evict", evict}, {ordered, orders}, {"replace", replace}, {"templates", templates},
	}
}

// Names are the names of all meetings.
func Names() []string {
	var names []string
	for _, m := range kinds() {
		names = append(names, m.name)
	}
	return names
}

// New returns the Meetings of these names; each source of choices is for one of them. What users run is built in the folder.
func New(c *cluster.Cluster, journal *records.Journal, choices func() *rand.Rand, folder string) *Meetings {
	return &Meetings{cluster: c, journal: journal, choices: choices, folder: folder}
}

// Run makes the meetings of these names again and again until the context ends, in so many lanes.
func (m *Meetings) Run(ctx context.Context, names []string, lanes int) error {
	if err := m.allowEvictions(ctx); err != nil {
		return err
	}
	var dealt []meeting
	for _, kind := range kinds() {
		if slices.Contains(names, kind.name) {
			dealt = append(dealt, kind)
		}
	}
	if len(dealt) != len(names) {
		return fmt.Errorf("meetings %q: want some of %q", names, Names())
	}
	m.deals = make(chan deal)
	m.tool = sync.OnceValues(func() (string, error) {
		path := filepath.Join(m.folder, "kubectl-refit")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/refit-project/refit/cmd/kubectl-refit").CombinedOutput()
		if err != nil && ctx.Err() == nil {
			return "", fmt.Errorf("build kubectl-refit: %w: %s", err, out)
		}
		return path, nil
	})
	var group errgroup.Group
	if slices.ContainsFunc(dealt, func(kind meeting) bool { return kind.name == ordered }) {
		group.Go(func() error { _, err := m.tool(); return err }) // it takes minutes on a busy machine
	}
	group.Go(func() error {
		defer close(m.deals)
		for n := 0; len(dealt) > 0; n++ {
			select {
			case m.deals <- deal{n, dealt[n%len(dealt)]}:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for range lanes {
		group.Go(func() error {
			for d := range m.deals {
				m.make(ctx, d)
			}
			return nil
		})
	}
	return group.Wait()
}

// Last ends the meetings that could not end, as in an outage or because the time of the faults was over. What they leave, such as a
// schedule, would go on to restart pods.
func (m *Meetings) Last(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.unfinished {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	m.unfinished = nil
	return nil
}

// make makes one meeting and takes its workload away. What cannot be done, as in an outage, is said: the next one will do.
func (m *Meetings) make(ctx context.Context, d deal) {
	s := &stage{
		cluster: m.cluster, choice: m.choices(), tool: m.tool, number: d.number,
		namespace: fmt.Sprintf("%s-%s-%d", cluster.Label, d.name, d.number),
	}
	begin := time.Now()
	err := d.play(ctx, s)
	if err != nil && ctx.Err() == nil && !errors.Is(err, cluster.ErrLate) {
		m.journal.Say("meeting %s: %v", d.name, err)
	}
	if err := s.end(ctx); err != nil {
		if ctx.Err() == nil {
			m.journal.Say("meeting %s: %v", d.name, err)
		}
		m.mu.Lock()
		m.unfinished = append(m.unfinished, s)
		m.mu.Unlock()
	}
	m.journal.Say("%-16s %s", "meeting", fmt.Sprintf("%s, %s", d.name, time.Since(begin).Round(time.Second)))
}

// Evicter lets the manager evict pods, which by default it may not.
func Evicter() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Label + "-evicter"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "refit-pod-evicter"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.SystemNamespace, Name: cluster.ManagerName}},
	}
}

func (m *Meetings) allowEvictions(ctx context.Context) error {
	return cluster.Until(ctx, "right to evict", time.Minute, func(ctx context.Context) bool {
		return client.IgnoreAlreadyExists(m.cluster.Create(ctx, Evicter())) == nil
	})
}
