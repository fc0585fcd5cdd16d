package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-project/refit/test/kit/markdown"
)

// kustomized installs by kubectl what docs/install.md says for those without Helm, with the images of a release, and removes it.
func (p *publisher) kustomized(u user) {
	p.t.Helper()
	page, err := markdown.Read(filepath.Join(p.root, "docs", "install.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	folder := filepath.Join(u.home, "kustomized")
	for _, block := range page {
		if !strings.HasPrefix(block.Text, "apiVersion: kustomize.config.k8s.io") {
			continue
		}
		text := strings.NewReplacer("registry.example.com/refit", p.repository, "-daemon}", "-daemon, newTag: v0.0.2}", "-manager}", "-manager, newTag: v0.0.2}").Replace(block.Text)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := os.Symlink(p.root, filepath.Join(folder, "refit")); err != nil {
		p.t.Fatalf("docs/install.md has no kustomization: %v", err)
	}
	u.does("cd kustomized && kubectl apply --server-side --force-conflicts --kustomize .")
	u.does(`kubectl rollout status daemonset/refit-daemon --namespace=refit-system --timeout=3m
kubectl rollout status deployment/refit-manager --namespace=refit-system --timeout=3m
kubectl wait --for=condition=complete job/refit-certificates --namespace=refit-system --timeout=2m`)
	images := u.does(`kubectl get pods --namespace=refit-system --output=jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}'`)
	for _, program := range []string{"daemon", "manager"} {
		if !strings.Contains(images, fmt.Sprintf("%s/refit-%s:v0.0.2\n", p.repository, program)) {
			p.t.Errorf("the refit-%s of the kustomization does not run:\n%s", program, images)
		}
	}
	u.restarts(4)
	p.takenOver(u)
	u.does("cd kustomized && kubectl delete --kustomize . --wait=false --ignore-not-found")
}

// takenOver takes an installation by manifests over with Helm, changes a value of it, and goes back.
func (p *publisher) takenOver(u user) {
	p.t.Helper()
	upgrade := "helm upgrade refit oci://" + p.repository + "/charts/refit --plain-http --namespace=refit-system --wait --timeout=4m --version=0.0.2 --force-conflicts "
	u.does(upgrade + "--install --take-ownership --server-side=true")
	u.does("kubectl delete mutatingwebhookconfiguration refit-manager-workloads --ignore-not-found")
	u.does(upgrade + "--set=manager.features.sidecarSets=false")
	u.does("helm rollback refit 1 --namespace=refit-system --wait --timeout=4m --force-conflicts")
	u.restarts(5)
	u.does("helm uninstall refit --namespace=refit-system --wait")
}
