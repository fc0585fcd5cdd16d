// Package refit_test checks the architecture: which room may import which, and what no room may import. The table of
// rooms below is the only place where that is written; the picture in docs/architecture.md is made from it.
package refit_test

import "strings"

// room is a folder with a rule about what it may import. A folder without a room of its own belongs to the room of the
// nearest folder above it; the programs and the parts of a mode have to be rooms of their own.
type room struct {
	path    string
	imports string // the rooms it imports, separated by spaces
	toCome  string // the rooms that it does not import yet; why says what for
	why     string
}

// row is a line of the picture. A room imports only rooms of lower rows, so parts of a mode never import each other.
type row struct {
	name  string
	rooms []room
	tools bool // for developers and tests: not in the picture, never imported by a product's row
}

// rows is the whole table, from the top down. Imports of test files are not looked at.
var rows = []row{
	{name: "benchmarks, examples, chaos", tools: true, rooms: []room{
		{path: "bench", imports: "hack cli kube cri signal sidecarset api identity wait"},
		{path: "docs", imports: "sidecarmode sidecarmode/plugin result"},
		{path: "hack/chaos", imports: "test hack"},
	}},
	{name: "tests on a cluster", tools: true, rooms: []room{{path: "test", imports: "hack cri api wait"}}},
	{name: "build and demos", tools: true, rooms: []room{{path: "hack", imports: "examples cli cri kubelet api identity"}}},
	{name: "examples", tools: true, rooms: []room{{path: "examples"}}},
	{name: "fakes", tools: true, rooms: []room{{path: "testkit", imports: "cri kubelet identity wait"}}},

	{name: "programs", rooms: []room{
		{path: "cmd/refit-daemon", imports: "daemon cri logging"},
		{path: "cmd/refit-sidecar", imports: "sidecarmode logging"},
		{path: "cmd/refit-manager", imports: "manager cli/doctor logging"},
		{path: "cmd/kubectl-refit", imports: "cmd/kubectl-refit/setflags cmd/kubectl-refit/usage cli cli/doctor api"},
	}},
	{name: "parts of programs", rooms: []room{{path: "cmd/kubectl-refit/setflags", imports: "cmd/kubectl-refit/usage cli cli/pull cli/turn inplace/plan kube"}}},
	{name: "command lines", rooms: []room{{path: "cmd/kubectl-refit/usage", imports: "cli"}}},
	{name: "modes", rooms: []room{
		{path: "daemon", imports: "daemon/images daemon/containermeta daemon/requests daemon/podprobes crr hook credentialprovider cri kube kube/serverclock httpserver tracing wait"},
		{path: "sidecarmode", imports: "sidecarmode/update sidecarmode/podprobe sidecarmode/recreate sidecarmode/httpprobe " +
			"sidecarmode/server sidecarmode/plugin sidecarmode/config sidecarmode/selftest signal kube/ownpod result identity foreign"},
		{path: "manager", imports: "manager/sidecarset/injection manager/sidecarset/render manager/images manager/rollouts manager/configchanges manager/requests manager/podprobes manager/certificates manager/sidecarset/rollout manager/disruptions manager/cache kube kube/serverclock tracing httpserver api wait"},
		{path: "cli", imports: "cli/pull cli/turn manager/sidecarset/render sidecarset image rollout crr podprobe kubelet inplace inplace/record inplace/plan inplace/facts kube api wait"},
	}},
	{name: "parts of a mode", rooms: []room{
		{path: "daemon/requests", imports: "daemon/requests/report hook kubelet crr cri api identity"},
		{path: "daemon/podprobes", imports: "daemon/podprobes/execprobe daemon/podprobes/probespec daemon/podprobes/probestatus " +
			"probe cri result api kubelet foreign"},
		{path: "daemon/images", imports: "image credentialprovider cri result api"},
		{path: "daemon/containermeta", imports: "inplace/plan inplace/facts hook kubelet cri api identity"},
		{path: "sidecarmode/update", imports: "sidecarmode/update/download sidecarmode/update/httpapi sidecarmode/update/record sidecarmode/update/steps " +
			"sidecarmode/update/metrics sidecarmode/update/trigger sidecarmode/plugin sidecarmode/process sidecarmode/config sidecarmode/selftest " +
			"hotupdate hotupdate/payload signal kube/ownpod result wait foreign"},
		{path: "sidecarmode/httpprobe", imports: "sidecarmode/endpoint sidecarmode/plugin sidecarmode/config probe result"},
		{path: "sidecarmode/podprobe", imports: "kubelet sidecarmode/endpoint sidecarmode/plugin probe result identity"},
		{path: "sidecarmode/recreate", imports: "sidecarmode/plugin sidecarmode/selftest crr hook kubelet signal kube/ownpod result api identity wait"},
		{path: "cli/pull", imports: "image kube api"},
		{path: "cli/turn", imports: "rollout/turn rollout/budget rollout kube/serverclock api"},
		{path: "cli/doctor", imports: "kubelet api"},
		{path: "manager/requests", imports: "manager/cache crr inplace api"},
		{path: "manager/rollouts", imports: "manager/disruptions manager/cache rollout crr api"},
		{path: "manager/configchanges", imports: "rollout api"},
		{path: "manager/podprobes", imports: "manager/podprobes/compiled manager/podprobes/marks manager/podprobes/omitted manager/cache podprobe result api foreign"},
		{path: "manager/certificates", imports: "manager/cache"},
		{path: "manager/sidecarset/rollout", imports: "manager/sidecarset/history manager/sidecarset/prepull manager/sidecarset/beside manager/sidecarset/podapi manager/sidecarset/report manager/cache manager/disruptions sidecarset rollout/budget inplace inplace/plan api"},
		{path: "manager/images", imports: "manager/cache image api"},
		{path: "manager/sidecarset/injection", imports: "manager/cache sidecarset api"},
		{path: "manager/sidecarset/render", imports: "sidecarset api"},
	}},
	{name: "parts of the rollout of SidecarSets", rooms: []room{
		{path: "manager/sidecarset/history", imports: "sidecarset api"},
		{path: "manager/sidecarset/prepull", imports: "api"},
		{path: "manager/sidecarset/beside", imports: "rollout/budget api"},
		{path: "manager/sidecarset/podapi", imports: "inplace"},
		{path: "manager/sidecarset/report", imports: "sidecarset api foreign"},
	}},
	{name: "parts of pod probes", rooms: []room{
		{path: "manager/podprobes/compiled", imports: "podprobe api"},
		{path: "manager/podprobes/marks", imports: "podprobe"},
		{path: "manager/podprobes/omitted"},
		{path: "daemon/podprobes/execprobe", imports: "probe cri"},
		{path: "daemon/podprobes/probespec", imports: "kubelet probe api"},
		{path: "daemon/podprobes/probestatus", imports: "result api"},
	}},
	{name: "parts of requests on a node", rooms: []room{{path: "daemon/requests/report", imports: "kubelet crr api identity"}}},
	{name: "parts of the plugin hot_update", rooms: []room{
		{path: "sidecarmode/update/download", imports: "hotupdate/fetch hotupdate/payload"},
		{path: "sidecarmode/update/httpapi", imports: "hotupdate"},
		{path: "sidecarmode/update/metrics", imports: "hotupdate"},
		{path: "sidecarmode/update/record", imports: "hotupdate kube/ownpod identity"},
		{path: "sidecarmode/update/steps", imports: "sidecarmode/endpoint sidecarmode/plugin sidecarmode/process hotupdate/action probe signal wait"},
		{path: "sidecarmode/update/trigger", imports: "sidecarmode/plugin hotupdate kube/ownpod wait"},
	}},
	{name: "what parts of a mode share", rooms: []room{
		{path: "manager/cache", imports: "kubelet podprobe result api"},
		{path: "manager/disruptions"},
		{path: "sidecarmode/endpoint", imports: "sidecarmode/plugin sidecarmode/process sidecarmode/config probe result"},
		{path: "sidecarmode/server", imports: "sidecarmode/config httpserver"},
	}},
	{name: "what plugins of the sidecar are given", rooms: []room{
		{path: "sidecarmode/plugin", imports: "sidecarmode/config sidecarmode/selftest signal kube/ownpod result identity wait foreign"},
	}},
	{name: "sidecar configuration and processes", rooms: []room{
		{path: "sidecarmode/config", imports: "result identity"},
		{path: "sidecarmode/process", imports: "kubelet signal identity"},
		{path: "sidecarmode/selftest", imports: "signal kube/ownpod result identity foreign"},
	}},
	{name: "features over several pods", rooms: []room{
		{path: "sidecarset", imports: "rollout/budget kubelet inplace inplace/record inplace/plan inplace/facts api foreign"},
		{path: "rollout", imports: "rollout/budget kubelet crr result api foreign"},
	}},
	{name: "turns of processes", rooms: []room{{path: "rollout/turn", imports: "rollout/budget"}}},
	{name: "budgets of several pods", rooms: []room{{path: "rollout/budget", imports: "crr inplace inplace/record inplace/facts kubelet api"}}},
	{name: "features", rooms: []room{
		{path: "crr", imports: "kubelet api identity"},
		{path: "probe", imports: "foreign"},
		{path: "podprobe", imports: "result api foreign"},
		{path: "hotupdate", imports: "hotupdate/action hotupdate/archive hotupdate/fetch hotupdate/store hotupdate/manifest hotupdate/payload"},
		{path: "hook", imports: "identity wait"},
		{path: "inplace", imports: "inplace/record inplace/plan inplace/facts kubelet api foreign"},
		{path: "image", imports: "api"},
	}},
	{name: "parts of hotupdate", rooms: []room{
		{path: "hotupdate/action", imports: "wait"},
		{path: "hotupdate/archive", imports: "hotupdate/payload"},
		{path: "hotupdate/fetch", imports: "hotupdate/payload wait"},
		{path: "hotupdate/store", imports: "hotupdate/manifest hotupdate/payload"},
	}},
	{name: "records of in-place updates", rooms: []room{{path: "inplace/record", imports: "inplace/plan kubelet api foreign"}}},
	{name: "what a revision is", rooms: []room{{path: "hotupdate/manifest", imports: "hotupdate/payload"}}},
	{name: "plans of in-place updates", rooms: []room{{path: "inplace/plan", imports: "inplace/facts kubelet api foreign"}}},
	{name: "rules for what comes from outside", rooms: []room{{path: "hotupdate/payload"}, {path: "inplace/facts", imports: "kubelet api foreign"}}},
	{name: "results", rooms: []room{{path: "result", imports: "identity foreign"}}},
	{name: "adapters", rooms: []room{
		{path: "cri", imports: "kubelet identity wait foreign"},
		{path: "credentialprovider"},
		{path: "signal", imports: "identity"},
		{path: "kube/ownpod", imports: "api identity kube/mergepatch kube/serverclock"},
		{path: "kube", imports: "kubelet api kube/mergepatch"},
	}},
	{name: "rules of kubelet", rooms: []room{{path: "kubelet"}}},
	{name: "wire types", rooms: []room{{path: "api"}}},
	{name: "shared words", rooms: []room{{path: "identity"}, {path: "wait"}, {path: "logging"}, {path: "tracing"}, {path: "httpserver"}, {path: "kube/mergepatch"},
		{path: "kube/serverclock"}}},
	{name: "text of others", rooms: []room{{path: "foreign"}}},
}

// split are the folders in which every folder with Go files has to be a room of its own.
var split = []string{"cmd", "daemon", "manager", "sidecarmode"}

// forbidden maps a package to the import paths that may not be among its dependencies, with why.
var forbidden = map[string]map[string]string{
	"cmd/refit-daemon": {
		"k8s.io/client-go/kubernetes":         "the typed clientset costs every node 10 MiB",
		"sigs.k8s.io/controller-runtime":      "the daemon's caches are narrower and its memory is counted",
		"k8s.io/cri-client":                   "its dependencies cost memory on every node",
		"github.com/containerd/containerd/v2": "its client costs every node 6 MB of binary and 2 MB of memory; the API of the content service has what is needed",
	},
	"cmd/refit-sidecar": {
		"k8s.io/client-go/kubernetes":    "every serverless pod pays for it",
		"sigs.k8s.io/controller-runtime": "every serverless pod pays for it",
		"k8s.io/cri-client":              "a sidecar has no runtime socket",
		"k8s.io/cri-api":                 "a sidecar has no runtime socket",
		"github.com/containerd":          "every serverless pod pays for it",
	},
	"crr":               {"k8s.io/client-go": "a decision has no client"},
	"inplace":           {"k8s.io/client-go": "a decision has no client"},
	"inplace/plan":      {"k8s.io/client-go": "a decision has no client"},
	"inplace/record":    {"k8s.io/client-go": "a decision has no client"},
	"kubelet":           {"k8s.io/client-go": "a rule of kubelet has no client"},
	"podprobe":          {"k8s.io/client-go": "a decision has no client"},
	"sidecarset/inject": {"k8s.io/client-go": "a decision has no client"},
	"api/v1alpha1":      {"sigs.k8s.io/controller-runtime": "the sidecar imports the wire types", "k8s.io/client-go": "wire types have no client"},
	"api/v1beta1":       {"sigs.k8s.io/controller-runtime": "the sidecar imports the wire types", "k8s.io/client-go": "wire types have no client"},
}

// forbiddenEverywhere is forbidden to every package of the product.
var forbiddenEverywhere = map[string]string{"k8s.io/kubernetes": "small facts of kubelet are re-implemented with golden tests"}

// find returns the room of a folder: the longest path in the table that is the folder or above it.
func find(table []row, folder string) (found room, at int) {
	at = -1
	for i, row := range table {
		for _, room := range row.rooms {
			if within(folder, room.path) && len(room.path) > len(found.path) {
				found, at = room, i
			}
		}
	}
	return found, at
}

func within(folder, top string) bool { return folder == top || strings.HasPrefix(folder, top+"/") }
