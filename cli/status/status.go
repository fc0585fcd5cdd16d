package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/table"
)

// Config is the configuration of the command.
type Config struct {
	API client.WithWatch
	// Namespace; empty for all.
	Namespace string
	table.Options
	// Since leaves out what ended earlier; zero shows everything.
	Since time.Duration
	Now   func() time.Time
}

// lists returns empty lists of the kinds that are shown.
func lists() []client.ObjectList {
	return []client.ObjectList{&v1beta1.ContainerRecreateRequestList{}, &v1alpha1.RestartRolloutList{}, &v1alpha1.InPlaceUpdatePolicyList{}, &v1beta1.ImagePullJobList{}}
}

// Run prints the objects, the newest last, with the requests of a RestartRollout below it, and then the objects that create
// RestartRollouts.
func Run(ctx context.Context, config Config, out io.Writer) error {
	var lines []Line
	rollouts := map[types.UID]Line{} // the last one of each RestartSchedule
	for _, list := range lists() {
		objects, err := config.list(ctx, list)
		if err != nil {
			return err
		}
		for _, object := range objects {
			line := Describe(object)
			if config.shown(line) {
				lines = append(lines, line)
			}
			if owner := metav1.GetControllerOf(object); owner != nil && later(line, rollouts[owner.UID]) {
				rollouts[owner.UID] = line
			}
		}
	}
	pods, err := config.pods(ctx)
	if err != nil {
		return err
	}
	lines = append(lines, pods...)
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time), strings.Compare(a.Name, b.Name))
	})
	shown := table.Table{Columns: columns(config.Namespace == ""), Nothing: config.nothing()}
	for _, line := range tree(lines) {
		shown.Rows = append(shown.Rows, table.Row{Object: line.Object, Cells: line.cells(config.Now(), config.Namespace == "")})
	}
	causes, err := config.causes(ctx, rollouts)
	if err != nil {
		return err
	}
	return table.Print(out, config.Options, config.API.Scheme(), shown, causes)
}

// later reports whether a line has a newer object than another one, if there is another one.
func later(a, b Line) bool {
	if b.Object == nil {
		return true
	}
	from, to := b.Object.GetCreationTimestamp(), a.Object.GetCreationTimestamp()
	return cmp.Or(to.Compare(from.Time), strings.Compare(a.Name, b.Name)) > 0
}

func (c Config) shown(line Line) bool {
	return c.Since == 0 || line.Ended.IsZero() || c.Now().Sub(line.Ended) < c.Since
}

func (c Config) nothing() string {
	text := "nothing under way"
	if c.Since > 0 {
		text += fmt.Sprintf(", and nothing that ended in the last %s (--all shows everything)", c.Since)
	}
	if c.Namespace != "" {
		text += " in namespace " + c.Namespace
	}
	return text
}

func columns(namespaces bool) []table.Column {
	all := []table.Column{{Name: "NAME"}, {Name: "TARGET"}, {Name: "STATE"}, {Name: "DONE"}, {Name: "REQUESTED BY"}, {Name: "AGE"}, {Name: "DETAIL", Wide: true}}
	if namespaces {
		return append([]table.Column{{Name: "NAMESPACE"}}, all...)
	}
	return all
}

// list reads the objects of a kind; none if the cluster does not serve it.
func (c Config) list(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	err := c.API.List(ctx, list, client.InNamespace(c.Namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, len(items))
	for i, item := range items {
		objects[i] = item.(client.Object)
	}
	return objects, nil
}
