// Package updates runs pods whose sidecar updates files for an application that follows them, and breaks them: it kills
// the sidecar and the application, fills the disk, and takes file descriptors and processes away. The source of the
// updates fails by itself (testapp updates).
package updates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
)

// Namespace is where the pods run.
const Namespace = cluster.Label + "-updates"

const (
	configName = "refit-sidecar"
	filesMount = "/app/downloads"
	// filesLimit has room for the revisions that are kept, the one before them, and the one that is written.
	filesLimit = "3Mi"

	sidecarName = "refit-sidecar"
	appName     = "app"
)

const config = `plugins:
  - name: hot_update
    config:
      fileDir: ` + filesMount + `
      keepRevisions: 2
      restore: {configMap: "off"} # their role has no ConfigMaps, and without a record they would wait for it
      loadPatchType: signal
      signal: {containerName: app, signalName: SIGHUP}
      fetch: {timeoutSeconds: 3, attempts: 1, allowNetworks: [127.0.0.0/8]}
      verify:
        withinSeconds: 5
        intervalSeconds: 0.2
        checks: [{url: 'http://127.0.0.1:8080/version', timeout: 2, expectedResult: '{version}'}]
      storageConfig:
        inKube: {annotationKey: refit.dev/hot-update-result, conditionType: refit.dev/HotUpdated}
`

// Updates are the pods.
type Updates struct {
	cluster *cluster.Cluster
	journal *records.Journal
	image   string // of the sidecar
	choice  *rand.Rand
	seed    uint64
	calm    bool
	caused  atomic.Int64 // faults
}

// New returns Updates by sidecars of that image. They are started by Start. In a calm run nothing is broken.
func New(c *cluster.Cluster, journal *records.Journal, image string, choice *rand.Rand, calm bool) *Updates {
	return &Updates{cluster: c, journal: journal, image: image, choice: choice, seed: choice.Uint64(), calm: calm}
}

// Start creates a pod on each node, and what it needs.
func (u *Updates) Start(ctx context.Context) error {
	if err := u.cluster.Namespace(ctx, Namespace); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: configName}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"config.yaml": config}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: configName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: configName, Namespace: Namespace}},
		},
	} {
		if err := client.IgnoreAlreadyExists(u.cluster.Create(ctx, object)); err != nil {
			return fmt.Errorf("make %T for sidecars: %w", object, err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range u.cluster.Nodes {
		group.Go(func() error { return u.cluster.Start(ctx, u.pod(node)) })
	}
	return group.Wait()
}

// pod has the application, the sidecar, and who asks it for updates. The application's signals are a record of their own, as
// its end is not one of a request's.
func (u *Updates) pod(node string) *corev1.Pod {
	return u.cluster.Pod(Namespace, "updates-"+node, node, func(spec *corev1.PodSpec) {
		files := corev1.VolumeMount{Name: "files", MountPath: filesMount}
		limit := resource.MustParse(filesLimit)
		spec.Volumes = append(spec.Volumes,
			corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit}}},
			corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configName}}}})
		app := &spec.Containers[0]
		app.Name = appName
		app.Args = []string{"--files=" + filesMount, "--http=:8080"}
		cluster.SetEnv(app, "SIGNAL_LOG", "/signals/$(POD_UID)"+cluster.UpdatesLog)
		asker := *app.DeepCopy()
		asker.Name, asker.Args = "asker", []string{"updates", fmt.Sprintf("--seed=%d", u.seed)}
		cluster.SetEnv(&asker, "CONTAINER_NAME", asker.Name)
		app.VolumeMounts = append(app.VolumeMounts, files)
		spec.Containers = append(spec.Containers, asker, u.sidecar(files))
		spec.ShareProcessNamespace = new(true)
		spec.ServiceAccountName, spec.AutomountServiceAccountToken = configName, new(true)
	})
}

func (u *Updates) sidecar(files corev1.VolumeMount) corev1.Container {
	env := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	const health = 5001
	return corev1.Container{
		Name: sidecarName, Image: u.image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"--config=/etc/refit/config/config.yaml"},
		Env: []corev1.EnvVar{
			env("POD_NAME", "metadata.name"), env("POD_NAMESPACE", "metadata.namespace"), env("POD_UID", "metadata.uid"),
			{Name: "CONTAINER_NAME", Value: sidecarName},
		},
		VolumeMounts: []corev1.VolumeMount{files, {Name: "config", MountPath: "/etc/refit/config", ReadOnly: true}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(health)}},
			PeriodSeconds: 1,
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"KILL"}},
		},
	}
}

// Run breaks the pods, one after the other, until the context ends.
func (u *Updates) Run(ctx context.Context) error {
	if u.calm {
		return nil
	}
	const between = 4 * time.Second // for updates without a fault
	faults := u.faults()
	for cluster.Pause(ctx, between) == nil {
		node := u.cluster.Nodes[u.choice.IntN(len(u.cluster.Nodes))]
		if err := u.cause(ctx, node, faults[int(u.caused.Load())%len(faults)]); err != nil {
			u.journal.Say("updates: %v", err) // as in an outage: it is tried again
			continue
		}
		u.caused.Add(1)
	}
	return nil
}
