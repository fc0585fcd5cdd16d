package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// krewPlugin has the fields of krew's Plugin (pkg/index/types.go), whose module is not a dependency.
type krewPlugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Version          string         `json:"version"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Homepage         string         `json:"homepage"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Selector *metav1.LabelSelector `json:"selector"`
	Bin      string                `json:"bin"`
}

// The rules of krew (internal/installation/semver, internal/index/validation), and the rules of its index for descriptions.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("krew/refit.yaml.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	type platform struct{ OS, Arch string }
	const version, sum = "v0.1.0", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	data := struct {
		Version   string
		Platforms []platform
		SHA256    map[string]string
	}{version, []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}, map[string]string{
		"kubectl-refit_v0.1.0_linux_amd64.tar.gz": sum, "kubectl-refit_v0.1.0_darwin_arm64.tar.gz": sum, "kubectl-refit_v0.1.0_windows_amd64.tar.gz": sum,
	}}
	var out strings.Builder
	if err := template.Must(template.New("krew").Parse(string(text))).Execute(&out, data); err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict([]byte(out.String()), &plugin); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Name != "refit" || plugin.Spec.Version != version {
		t.Errorf("%+v", plugin)
	}
	if short := plugin.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\r\n") || strings.HasSuffix(short, ".") {
		t.Errorf("short description %q", short)
	}
	if len(plugin.Spec.Platforms) != len(data.Platforms) {
		t.Fatalf("%d platforms", len(plugin.Spec.Platforms))
	}
	for i, of := range plugin.Spec.Platforms {
		want := data.Platforms[i]
		if labels := of.Selector.MatchLabels; len(labels) != 2 || labels["os"] != want.OS || labels["arch"] != want.Arch {
			t.Errorf("selector %v", labels)
		}
		if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(of.SHA256) || !strings.HasSuffix(of.URI, "/"+version+"/kubectl-refit_"+version+"_"+want.OS+"_"+want.Arch+".tar.gz") {
			t.Errorf("%+v", of)
		}
		if (of.Bin == "kubectl-refit.exe") != (want.OS == "windows") || !strings.HasPrefix(of.Bin, "kubectl-refit") {
			t.Errorf("bin %s on %s", of.Bin, want.OS)
		}
	}
}
