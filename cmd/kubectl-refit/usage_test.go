package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/console"
)

// ran runs the program, which has to end before it needs a cluster.
func ran(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := command("v1.2.3")
	var out bytes.Buffer
	root.SetArgs(append(args, "--kubeconfig=/none/such"))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// Each of these was accepted and had no effect, or was answered in the words of a library or of the API.
func TestWrongUsageIsSaidInTheWordsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  string
		words []string
	}{
		{"restart pod/web --max-unavailable=7", []string{"--max-unavailable has no meaning for one pod"}},
		{"restart pod/web --partition=5", []string{"--partition has no meaning for one pod"}},
		{"restart pod web --continue-on-failure", []string{"--continue-on-failure has no meaning for one pod"}},
		{"restart pod/web --ignore-pod-disruption-budgets", []string{"--ignore-pod-disruption-budgets has no meaning for one pod"}},
		{"restart deployment/web --max-unavailable=none", []string{"--max-unavailable=none: want a number of at least 1, or a percentage"}},
		{"restart deployment/web --max-unavailable=0", []string{"--max-unavailable=0: want a number of at least 1"}},
		{"restart deployment/web --drain-seconds=-5", []string{"--drain-seconds=-5: want a number of at least 0"}},
		{"restart pod/web --min-ready-seconds=-1", []string{"--min-ready-seconds=-1: want"}},
		{"restart web", []string{`"web": want KIND/NAME; did you mean deployment/web or pod/web?`}},
		{"restart pod/web --dry-run=later", []string{"--dry-run", "want server, client or none"}},
		{"restart deployment/web --max-unavailabel=1", []string{"unknown flag: --max-unavailabel; did you mean --max-unavailable?"}},
		{"restart deployment/web --nothing-like-that", []string{"unknown flag: --nothing-like-that; see kubectl refit restart --help"}},
		{"restart pod/web --timeout=-1s", []string{"--timeout", "want a time of at least 0, such as 90s"}},
		{"set image pod/web app=b --timeout=soon", []string{"--timeout", "want a time of at least 0"}},
		{"restart deployment", []string{`"deployment": want a name after the kind`}},
		{"restart deployment/web api", []string{"either KIND/NAME... or KIND NAME..."}},
		{"restart deployment/web pod/x --max-unavailable=2", []string{"--max-unavailable has no meaning for one pod"}},
		{"restart job -l app=web", []string{`"job" with --selector: want kinds of workloads`}},
		{"restart deployment web -l app=web", []string{`"web" with --selector`}},
		{"restart deployment/web -f x.yaml", []string{"either by arguments and --selector, or by --filename"}},
		{"restart -l 'a b'", []string{"--selector"}},
		{"pull nginx --nodes=a>b", []string{"--nodes"}},
		{"restart pod/web -o wide", []string{"--output=wide: want name, json, yaml, jsonpath, go-template, custom-columns"}},
		{"status -o xml", []string{"--output=xml: want", "custom-columns, wide"}},
		{"status -o jsonpath={", []string{"--output=jsonpath={: "}},
		{"restrat deployment/web", []string{`unknown command "restrat"; did you mean restart?`}},
		{"sidecarset stats", []string{`unknown command "stats"; did you mean status?`}},
		{"set image pod web", []string{"requires at least 1 change", "set image"}},
		{"set image app=x:2", []string{"requires at least 1 change"}},
		{"set image web app=x:2", []string{`"web": want KIND/NAME; did you mean deployment/web or pod/web?`}},
		{"set image replicaset/web app=x:2", []string{`"replicaset/web": want a deployment, statefulset or daemonset`}},
		{"set image deployment/web app=x:2 --order=app", []string{"--order has no meaning for a workload"}},
		{"set image pod/web app=x:2 --canary=1", []string{"--canary has no meaning for a pod"}},
		{"set image deployment/web app=x:2 --canary=0", []string{"--canary=0: want a number of at least 1"}},
		{"set image deployment/web app=x:2 --max-unavailable=0", []string{"--max-unavailable=0: want a number of at least 1"}},
		{"rollout status pod/web", []string{`"pod/web": want a deployment, statefulset or daemonset, or an inplaceupdatepolicy`}},
		{"rollout restart deployment/web", []string{`unknown command "restart"`, "kubectl refit restart KIND/NAME"}},
		{"status -w", []string{"unknown shorthand flag: 'w'", "kubectl refit watch"}},
		{"status --watch", []string{"unknown flag: --watch", "kubectl refit watch"}},
		{"logs web -p", []string{"unknown shorthand flag: 'p'", "shows the end of the previous instance without it"}},
		{"logs web --previous", []string{"unknown flag: --previous", "shows the end of the previous instance without it"}},
		{"doctor --openkruise=back", []string{`--openkruise: direction "back": want to-refit, from-refit or both`}},
		{"files update web --version=2 --parallelism=2 --url=x", []string{"--parallelism has no meaning for one pod"}},
		{"files update -l app=web --version=2 --parallelism=0 --url=x", []string{"--parallelism=0: want at least 1"}},
		{"files update -l a>b --version=2 --url=x", []string{"--selector"}},
		{"files update web --version=2 --url=x --dry-run=later", []string{"--dry-run", "want server, client or none"}},
		{"files update --version=2 --url=x", []string{"requires at least 1 arg"}},
		{"why replicaset/web", []string{`"replicaset/web": want`}},
		{"why deployment/web --tail=3", []string{"--tail has no meaning for a workload"}},
		{"rollout undo restartrollout/web-x", []string{"undo has no meaning for a RestartRollout"}},
		{"rollout promote sidecarset/mesh", []string{"promote has no meaning for a SidecarSet"}},
		{"rollout abort deployment/web", []string{"abort has no meaning for a workload"}},
		{"rollout pause job/x", []string{"job"}},
	} {
		_, err := ran(t, strings.Fields(test.args)...)
		if console.ExitCode(err) != console.ExitRefused {
			t.Errorf("%s: exit code %d: %v", test.args, console.ExitCode(err), err)
			continue
		}
		for _, words := range test.words {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: no %q in %q", test.args, words, err)
			}
		}
	}
}

// An accepted command line ends with the error that there is no kubeconfig.
func TestFormsOfKubectlAreAccepted(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"restart deployment shop -c app,log", "restart deployment a b", "restart deploy/a sts/b ds/c", "restart pods -l app=web", "restart deploy,sts -l app!=web", "pull nginx --nodes pool!=gpu",
		"status -o jsonpath={.items}", "restart pod/web -o custom-columns=NAME:.metadata.name", "restart pod/web -o go-template={{.kind}}", "restart pod shop --dry-run", "restart pod/shop --dry-run=server", "restart pod/shop --dry-run=client",
		"restart pod/shop --dry-run=true", "restart pod/shop --dry-run=none", "restart pod/shop --min-ready-seconds=3",
		"restart deployment/shop --max-unavailable=25%", "set image pod/shop app=x:2 --dry-run=server", "set image pod shop app=x:2", "set env po shop LEVEL=debug", "set resources pods shop --limits=cpu=1", "set env deployment shop LEVEL=debug", "set image sts/shop app=x:2 --canary=10% --wait=false", "rollout status deploy shop",
		"rollout undo iup/shop --to-revision=2 --dry-run", "rollout promote ds/shop --full", "why pod web", "why deployment web", "rollout pause rr/x", "rollout status restartrollout x --watch=false", "rollout abort rr x", "rollout undo sidecarset mesh --to-revision=1", "schedule ls -A", "schedule trigger nightly --wait=false", "why pods/web", "logs po web", "timeline crr web-x",
		"files update web --version=2 --url=x --dry-run", "files update web --version=2 --url=x --dry-run=server", "files update web --version=2 --url=x --dry-run=client", "files update web --version=2 --url=x --dry-run=false",
	} {
		if _, err := ran(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestVersionIsACommandToo(t *testing.T) {
	t.Parallel()
	command, err := ran(t, "version")
	if err != nil {
		t.Fatal(err)
	}
	flag, err := ran(t, "--version")
	if err != nil || command != flag || !strings.Contains(command, "kubectl refit version v1.2.3") {
		t.Errorf("%v: %q and %q", err, command, flag)
	}
}
