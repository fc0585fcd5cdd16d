package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/internal/console"
)

const manifests = `apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log, namespace: system}}
`

func TestTargetsAreSelectedAsInKubectl(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"web.yaml": manifests, "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "broken.yaml": "{",
		"kustomization.yaml": "resources: [web.yaml]\nnamePrefix: my-\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"deployment/web pod/x":                      "deployment/web pod/x",
		"deployment web api":                        "deployment/web deployment/api",
		"-l app=web":                                "selector app in (web)",
		"pods -l app!=web":                          "selector app notin (web)",
		"deployment -l tier=front":                  "shop:deployment/web shop:deployment/api",
		"deploy -l tier=front":                      "shop:deployment/web shop:deployment/api",
		"deployment.apps/web":                       "deployment/web",
		"deployments.apps -l tier=front":            "shop:deployment/web shop:deployment/api",
		"deployment -l tier=back":                   "1: no deployment in namespace shop matches --selector=tier=back",
		"-f FOLDER/web.yaml":                        "shop:deployment/web system:daemonset/log",
		"-f FOLDER/web.yaml -n other":               "2: does not match the namespace",
		"-k FOLDER":                                 "shop:deployment/my-web system:daemonset/my-log",
		"-f FOLDER/service.yaml":                    "2: no pod and no workload that can be restarted in 1 object",
		"-f FOLDER/broken.yaml":                     "2: --filename",
		"-f FOLDER/gone.yaml":                       "2: gone.yaml",
		"-f FOLDER/web.yaml -f FOLDER/service.yaml": "shop:deployment/web system:daemonset/log",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			connection := genericclioptions.NewConfigFlags(true)
			connection.KubeConfig, connection.CacheDir = new(kubeconfig), new(t.TempDir())
			selected := targets{connection: connection}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			connection.AddFlags(flags)
			selected.add(flags)
			if err := flags.Parse(strings.Fields(strings.ReplaceAll(line, "FOLDER", folder))); err != nil {
				t.Fatal(err)
			}
			found, err := selected.of(flags.Args())
			if err != nil {
				code, words, _ := strings.Cut(want, ": ")
				if got := console.ExitCode(err); code != string(rune('0'+got)) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "update") {
					t.Errorf("exit code %d: %v", got, err)
				}
				return
			}
			var names []string
			for _, target := range found {
				name := target.String()
				if target.Namespace != "" {
					name = target.Namespace + ":" + name
				}
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s", got)
			}
		})
	}
}
