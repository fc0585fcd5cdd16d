package chart_test

import (
	"path/filepath"
	"strings"

	"github.com/refit-project/refit/test/kit/markdown"
)

// carried takes a release to other registries as docs/how-to/air-gapped.md says, and upgrades from there.
func (p *publisher) carried(u user, folder string) {
	p.t.Helper()
	page, err := markdown.Read(filepath.Join(p.root, "docs", "how-to", "air-gapped.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	registry, repository, _ := strings.Cut(p.repository, "/")
	for i, block := range page {
		if block.Mark != markdown.By {
			continue
		}
		inside := "carried-" + repository
		if strings.Contains(block.Text, "crane") { // the files of the release
			inside = "files-" + repository
			u.does("cp " + folder + "/* .")
		}
		u.does(strings.NewReplacer("ghcr.io/refit-project", p.repository, "v0.1.0", "v0.0.2", "0.1.0", "0.0.2", "registry.example.com/refit", registry+"/"+inside,
			"registry.example.com", registry, "image.repository=refit", "image.repository="+inside, "oci://", "--plain-http oci://", "helm install", "helm upgrade").Replace(block.Text))
		if !strings.Contains(block.Text, "helm install") {
			continue
		}
		images := u.does(`kubectl get daemonset/refit-daemon deployment/refit-manager --namespace=refit-system --output=jsonpath='{range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}'`)
		if count := strings.Count(images, registry+"/"+inside+"/refit-"); count != 2 || strings.Count(images, ":v0.0.2@sha256:") != 2 {
			p.t.Errorf("block %d: images from elsewhere, or without digests, run:\n%s", i, images)
		}
		p.matches(images, folder)
	}
	u.does(verifies + registry + "/carried-" + repository + "/refit-daemon:v0.0.2 " + registry + "/carried-" + repository + "/charts/refit:0.0.2")
}
