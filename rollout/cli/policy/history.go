package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/rollout/workload"
)

// annotationChangeCause is what kubectl rollout history shows.
const annotationChangeCause = "kubernetes.io/change-cause"

// revision is a template that the workload has had, with the number by which kubectl names it.
type revision struct {
	number   int64
	cause    string
	template *corev1.PodTemplateSpec
	present  bool
}

// history returns the revisions of the workload, the oldest first.
func (s *stored) history() ([]revision, error) {
	if err := workload.Readable(s.object); err != nil {
		return nil, fmt.Errorf("read workload: %w", err)
	}
	var all []revision
	for _, set := range s.replicaSets {
		number, err := strconv.ParseInt(set.Annotations[workload.AnnotationRevision], 10, 64)
		if err != nil {
			continue // its controller has not numbered it yet
		}
		if err := workload.CheckTemplate(set.Name, &set.Spec.Template); err != nil {
			return nil, fmt.Errorf("read revisions: %w", err)
		}
		all = append(all, revision{number: number, cause: set.Annotations[annotationChangeCause], template: withoutHash(&set.Spec.Template)})
	}
	for _, of := range s.revisions {
		template, err := workload.RevisionTemplate(of)
		if err != nil {
			return nil, fmt.Errorf("read revisions: %w", err)
		}
		all = append(all, revision{number: of.Revision, cause: of.Annotations[annotationChangeCause], template: template})
	}
	slices.SortFunc(all, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	for i := range all {
		all[i].present = apiequality.Semantic.DeepEqual(all[i].template, withoutHash(s.template()))
	}
	return all, nil
}

func withoutHash(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return t
}

// HistoryConfig is the configuration of History.
type HistoryConfig struct {
	Config
	// Revision whose template is printed; zero for the table of all revisions.
	Revision int64
	Table    table.Options
}

// History prints the revisions of a workload, or the template of one.
func History(ctx context.Context, config HistoryConfig, out io.Writer, target Target) error {
	c, err := begin(ctx, config.Config, target)
	if err != nil {
		return err
	}
	s, err := c.read(ctx)
	if err != nil {
		return err
	}
	all, err := s.history()
	if err != nil {
		return err
	}
	if config.Revision != 0 {
		of, err := choose(all, config.Revision)
		if err != nil {
			return err
		}
		return printTemplate(out, of.template)
	}
	shown := table.Table{
		Columns: []table.Column{{Name: "REVISION"}, {Name: "TEMPLATE"}, {Name: "IMAGES"}, {Name: "CHANGE-CAUSE"}},
		Nothing: "no revisions of " + c.target.String(),
	}
	for i := range all {
		now := ""
		if all[i].present {
			now = "present"
		}
		shown.Rows = append(shown.Rows, table.Row{Object: s.object, Cells: []any{all[i].number, now, images(all[i].template), cmp.Or(all[i].cause, "<none>")}})
	}
	if err := table.Print(out, config.Table, c.API.Scheme(), shown); err != nil {
		return fmt.Errorf("print revisions: %w", err)
	}
	if len(all) > 0 && !config.Table.NoHeaders && !slices.ContainsFunc(all, func(r revision) bool { return r.present }) {
		fmt.Fprintf(out, "The present template (%s) gets a revision when its update has ended.\n", images(s.template()))
	}
	return nil
}

func printTemplate(out io.Writer, template *corev1.PodTemplateSpec) error {
	text, err := json.Marshal(template)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("print template: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// images returns the images of a template, by container.
func images(template *corev1.PodTemplateSpec) string {
	var texts []string
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		texts = append(texts, c.Name+"="+c.Image)
	}
	return strings.Join(texts, ",")
}

var (
	errNoRevision = errors.New("no such revision")
	errNoEarlier  = errors.New("there is no earlier revision with another template")
)

// choose returns the revision with a number; for 0 the newest one whose template is not the present one.
func choose(all []revision, number int64) (*revision, error) {
	var numbers []string
	for i := range slices.Backward(all) {
		if number == all[i].number || number == 0 && !all[i].present {
			return &all[i], nil
		}
		numbers = append(numbers, strconv.FormatInt(all[i].number, 10))
	}
	if number == 0 {
		return nil, fmt.Errorf("%w: %w", console.ErrRefused, errNoEarlier)
	}
	return nil, fmt.Errorf("%w: %w: %d; there are %s", console.ErrRefused, errNoRevision, number, cmp.Or(strings.Join(numbers, ", "), "none"))
}

// UndoConfig is the configuration of an undo.
type UndoConfig struct {
	SetConfig
	// Revision is the number of the revision to go back to; 0 is the last one with another template.
	Revision int64
}

// Undo writes the template of an earlier revision to a workload, also while an update is in progress, which kubectl refuses for a
// Deployment that is held. refit-manager updates the pods in place.
func Undo(ctx context.Context, config UndoConfig, target Target) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	c, err := begin(ctx, config.Config, target)
	if err != nil {
		return console.Ended(ctx, err)
	}
	s := &setter{command: c, how: config.SetConfig}
	return console.Ended(ctx, s.undo(ctx, config.Revision))
}

func (s *setter) undo(ctx context.Context, number int64) error {
	before, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.before = before
	if err := s.findPolicy(ctx); err != nil {
		return err
	}
	all, err := before.history()
	if err != nil {
		return err
	}
	to, err := choose(all, number)
	if err != nil {
		return err
	}
	s.Output.Say("%s: back to revision %d: %s", s.target, to.number, images(to.template))
	if s.patch, err = undoPatch(s.target.Kind, to); err != nil {
		return err
	}
	return s.write(ctx)
}

// undoPatch returns the patch that replaces the template of a workload by the one of a revision; nil if it has it.
func undoPatch(kind string, to *revision) ([]byte, error) {
	if to.present {
		return nil, nil
	}
	text, err := json.Marshal(to.template)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	replaced := append(slices.Clone(text[:len(text)-1]), `,"$patch":"replace"}`...)
	patch := map[string]any{"spec": map[string]any{"template": json.RawMessage(replaced)}}
	if kind == "Deployment" { // as kubectl rollout undo does
		var cause any
		if to.cause != "" {
			cause = to.cause
		}
		patch["metadata"] = map[string]any{"annotations": map[string]any{annotationChangeCause: cause}}
	}
	return json.Marshal(patch)
}
