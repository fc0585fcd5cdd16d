package e2e_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

var (
	metricName   = regexp.MustCompile(`\brefit_[a-z0-9_]+`)
	documented   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\| ")
	exposedLine  = regexp.MustCompile(`(?m)^(refit_[a-z0-9_]+)(?:\{(.*)\})? `)
	exposedLabel = regexp.MustCompile(`([a-z_]+)="`)
)

// ofDashboard are the labels of the metrics that the dashboard and the rules of the chart name, by docs/metrics.md.
// hack/monitoring compares the labels in their queries with that page.
func (s *fixture) ofDashboard() map[string][]string {
	s.t.Helper()
	page, err := os.ReadFile(filepath.Join(root(), "docs", "metrics.md"))
	s.check(err, "read the list of metrics")
	labels := map[string][]string{}
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		has := strings.FieldsFunc(row[3], func(r rune) bool { return r == '`' || r == ',' || r == ' ' })
		if row[2] != "histogram" {
			labels[row[1]] = has
			continue
		}
		labels[row[1]+"_sum"], labels[row[1]+"_count"], labels[row[1]+"_bucket"] = has, has, append(slices.Clone(has), "le")
	}
	named := map[string][]string{}
	for _, file := range []string{"dashboard.json", "rules.yaml"} {
		text, err := os.ReadFile(filepath.Join(root(), "deploy", "chart", "files", file))
		s.check(err, "read %s", file)
		for _, name := range metricName.FindAllString(string(text), -1) {
			if strings.HasPrefix(name, "refit_sidecar_") {
				continue // served by sidecars
			}
			has, known := labels[name]
			if !known {
				s.t.Errorf("%s names %s, which docs/metrics.md does not have", file, name)
			}
			named[name] = has
		}
	}
	if len(named) < 15 {
		s.t.Fatalf("only %d metrics in the dashboard and the rules", len(named))
	}
	return named
}

// exposed adds the metrics of an answer, with the labels of all their series.
func exposed(body string, to map[string][]string) {
	for _, line := range exposedLine.FindAllStringSubmatch(body, -1) {
		labels := to[line[1]]
		for _, label := range exposedLabel.FindAllStringSubmatch(line[2], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		to[line[1]] = slices.Compact(labels)
	}
}

// scrape reads the metrics of all daemons and managers as Prometheus does.
func (s *fixture) scrape(ctx context.Context, addresses []string, token string) map[string][]string {
	s.t.Helper()
	found := map[string][]string{}
	for _, address := range addresses {
		if code, body := s.get(ctx, "https://"+address+"/metrics", token); code == http.StatusOK {
			exposed(body, found)
		}
	}
	return found
}

// TestMetricsOfTheDashboardAreServed does a little of everything, since a counter with labels is not there before it has counted.
func TestMetricsOfTheDashboardAreServed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	want := s.ofDashboard()
	repository, tag, _ := s.testappImage()
	s.pull("present", repository+":"+tag, nil)
	s.pull("missing", missingImage+"-of-the-dashboard", func(spec *v1beta1.ImagePullJobSpec) { // also a failed call to the runtime
		spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(0))}
	})
	s.sidecarSet("agent", "containers: [{name: agent, image: "+image+", command: [sh, -c, sleep 1000]}]")
	pod := selected("agent", s.podOf("seen", shell("app", obedient)))
	s.knows(pod, "agent")
	s.start(pod)
	s.deployment("web", 1)
	s.mark("probes", "web", probing("up", "app", command("true")))
	if out, code := s.restart("deployment/web", "-c", "app"); code != 0 {
		t.Fatalf("restart: exit code %d:\n%s", code, out)
	}
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
	s.waitFor("Complete", "present")
	s.waitFor("Failed", "missing")

	var addresses []string
	for _, node := range s.nodes {
		addresses = append(addresses, s.forward(s.daemonOn(node), "10223"))
	}
	var managers corev1.PodList
	s.check(s.List(t.Context(), &managers, managerPods()...), "find managers")
	for i := range managers.Items {
		addresses = append(addresses, s.forward(&managers.Items[i], "8080"))
	}
	token, missing := s.metricsReader(), ""
	err := until(t.Context(), patience, func(ctx context.Context) (bool, error) {
		found := s.scrape(ctx, addresses, token)
		var lacks []string
		for name, labels := range want {
			has, served := found[name]
			if !served {
				lacks = append(lacks, name)
				continue
			}
			for _, label := range labels {
				if !slices.Contains(has, label) {
					lacks = append(lacks, name+"{"+label+"}")
				}
			}
		}
		slices.Sort(lacks)
		missing = strings.Join(lacks, ", ")
		return missing == "", nil
	})
	if err != nil {
		t.Errorf("metrics of the dashboard that nobody serves: %s", missing)
	}
}
