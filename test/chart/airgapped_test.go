package chart_test

import (
	"path/filepath"
	"strings"

	"github.com/refit-project/refit/test/kit/markdown"
)

// carried takes a release to another registry as docs/how-to/air-gapped.md says, and upgrades from there.
func (p *publisher) carried(u user) {
	p.t.Helper()
	page, err := markdown.Read(filepath.Join(p.root, "docs", "how-to", "air-gapped.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	const other = "other-registry"
	inside := strings.Replace(p.repository, "/", "/"+other+"-", 1)
	registry, repository, _ := strings.Cut(inside, "/")
	fill := strings.NewReplacer("ghcr.io/refit-project", p.repository, "v0.1.0", "v0.0.2", "0.1.0", "0.0.2", "registry.example.com/refit", inside,
		"registry.example.com", registry, "image.repository=refit", "image.repository="+repository, "oci://", "--plain-http oci://", "helm install", "helm upgrade")
	for _, block := range page {
		if block.Mark == markdown.By {
			u.does(fill.Replace(block.Text))
		}
	}
	u.does(verifies + inside + "/refit-daemon:v0.0.2 " + inside + "/charts/refit:0.0.2")
	images := u.does(`kubectl get pods --namespace=refit-system --output=jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}'`)
	if count := strings.Count(images, inside+"/"); count < 2 {
		p.t.Errorf("images from elsewhere run:\n%s", images)
	}
}
