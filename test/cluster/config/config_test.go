package config_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/test/cluster/config"
	"github.com/refit-project/refit/test/cluster/state"
)

func node() config.Node {
	return config.Node{
		State: state.New("/src/refit"), Number: 2, Registry: "10.245.0.1:5000",
		Runc: "/cache/runc", CNIPlugins: "/cache/cni", RestrictOOMScore: true,
	}
}

func TestKubelet(t *testing.T) {
	t.Parallel()
	type kubelet struct {
		ContainerRuntimeEndpoint string
		CgroupRoot               string
		FeatureGates             map[string]bool
		ClusterDNS               []string
	}
	tests := map[string]struct {
		gates  []string
		socket string
		check  func(kubelet) bool
	}{
		"default": {check: func(k kubelet) bool {
			return k.ContainerRuntimeEndpoint == "unix:///run/containerd/containerd.sock" && k.FeatureGates == nil &&
				k.CgroupRoot == "/"+node().CgroupRoot() && slices.Equal(k.ClusterDNS, []string{state.DNSService})
		}},
		"feature gates": {gates: []string{"EventedPLEG=true", "Other=false"}, check: func(k kubelet) bool {
			return k.FeatureGates["EventedPLEG"] && !k.FeatureGates["Other"] && len(k.FeatureGates) == 2
		}},
		"another socket": {socket: "/run/proxy.sock", check: func(k kubelet) bool {
			return k.ContainerRuntimeEndpoint == "unix:///run/proxy.sock"
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := node()
			node.FeatureGates, node.CRISocket = test.gates, test.socket
			var got kubelet
			if err := yaml.Unmarshal([]byte(node.Kubelet()), &got); err != nil {
				t.Fatal(err)
			}
			if !test.check(got) {
				t.Errorf("kubelet configuration: %+v", got)
			}
		})
	}
}

func TestContainerd(t *testing.T) {
	t.Parallel()
	var got struct {
		Plugins struct {
			Runtime struct {
				Restrict bool `toml:"restrict_oom_score_adj"`
				CNI      struct {
					Bin []string `toml:"bin_dirs"`
				} `toml:"cni"`
			} `toml:"io.containerd.cri.v1.runtime"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal([]byte(node().Containerd()), &got); err != nil {
		t.Fatal(err)
	}
	if runtime := got.Plugins.Runtime; !runtime.Restrict || !slices.Equal(runtime.CNI.Bin, []string{"/cache/cni"}) {
		t.Errorf("containerd configuration: %+v", got)
	}
	var hosts map[string]any
	if err := toml.Unmarshal([]byte(node().RegistryHosts()), &hosts); err != nil {
		t.Fatal(err)
	}
	if hosts["server"] != "http://10.245.0.1:5000" {
		t.Errorf("registry hosts: %v", hosts)
	}
}

func TestCNI(t *testing.T) {
	t.Parallel()
	first, second := node(), node()
	first.Number = 1
	for _, node := range []config.Node{first, second} {
		if !json.Valid([]byte(node.CNI())) {
			t.Errorf("network configuration is not JSON:\n%s", node.CNI())
		}
	}
	if state.NodePods(1) == state.NodePods(2) {
		t.Error("two nodes share their pods' addresses")
	}
}

func TestAuditPolicyKeepsOurObjectsWhole(t *testing.T) {
	t.Parallel()
	var policy struct {
		Rules []struct {
			Level     string
			Verbs     []string
			Resources []struct {
				Group     string
				Resources []string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(config.AuditPolicy()), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(config.AuditPolicy()), &policy); err != nil {
		t.Fatal(err)
	}
	if rule := policy.Rules[0]; rule.Level != "None" || !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("the first rule drops reads: got %+v", rule)
	}
	rule := policy.Rules[1]
	if rule.Level != "RequestResponse" || len(rule.Resources) != 2 || rule.Resources[0].Group != "apps.kruise.io" || rule.Resources[1].Group != "refit.dev" {
		t.Errorf("the second rule keeps our objects: got %+v", rule)
	}
}

// A file of the API server that it cannot read ends it at its start, without a word about the field.
func TestTheAPIServerHasACertificateForWebhooks(t *testing.T) {
	t.Parallel()
	plane := config.ControlPlane{State: state.New("/src/refit")}
	var admission struct {
		Kind    string
		Plugins []struct {
			Name          string
			Configuration struct{ KubeConfigFile string }
		}
	}
	if err := yaml.Unmarshal([]byte(plane.Admission()), &admission); err != nil {
		t.Fatal(err)
	}
	if len(admission.Plugins) != 2 || admission.Plugins[0].Configuration.KubeConfigFile != plane.WebhookKubeconfigFile() {
		t.Errorf("admission configuration: %+v", admission)
	}
	var kubeconfig struct{ Users []struct{ Name string } }
	if err := yaml.Unmarshal([]byte(plane.WebhookKubeconfig()), &kubeconfig); err != nil {
		t.Fatal(err)
	}
	if len(kubeconfig.Users) != 1 || kubeconfig.Users[0].Name != "refit-manager-webhook.refit-system.svc" {
		t.Errorf("kubeconfig: %+v", kubeconfig)
	}
	if !slices.Contains(plane.APIServerArgs(), "--admission-control-config-file="+plane.AdmissionFile()) {
		t.Error("the API server does not read the admission configuration")
	}
}
