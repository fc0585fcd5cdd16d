package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// Logs opens the log of a container.
type Logs func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// Config is what an archive is made from.
type Config struct {
	API  client.Reader
	Logs Logs
	// System is the namespace of refit-manager and refit-daemon.
	System string
	// Doctor writes the findings of kubectl refit doctor.
	Doctor func(io.Writer)
	Now    time.Time
}

// Limits of an archive.
const (
	most     = 500     // objects of a kind
	pages    = 20      // of Events, most of which are not of Refit; a page has most of them
	logLines = 5000    // of a container
	logBytes = 4 << 20 // of a container
)

// source is a kind that is read, in a namespace or in all.
type source struct {
	kind      schema.GroupVersionKind
	namespace string
	file      string
}

func (c Config) sources() []source {
	refit := func(kind string) schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind(kind) }
	kruise := func(kind string) schema.GroupVersionKind { return v1beta1.GroupVersion().WithKind(kind) }
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	return []source{
		{kruise("ContainerRecreateRequest"), "", "containerrecreaterequests"}, {refit("RestartRollout"), "", "restartrollouts"},
		{refit("RestartSchedule"), "", "restartschedules"}, {refit("RestartTrigger"), "", "restarttriggers"}, {refit("InPlaceUpdatePolicy"), "", "inplaceupdatepolicies"},
		{kruise("SidecarSet"), "", "sidecarsets"}, {kruise("ImagePullJob"), "", "imagepulljobs"}, {kruise("ImageListPullJob"), "", "imagelistpulljobs"}, {kruise("NodeImage"), "", "nodeimages"},
		{kruise("PodProbeMarker"), "", "podprobemarkers"}, {kruise("NodePodProbe"), "", "nodepodprobes"},
		{corev1.SchemeGroupVersion.WithKind("Node"), "", "nodes"},
		{apps.WithKind("Deployment"), c.System, "system-deployments"}, {apps.WithKind("DaemonSet"), c.System, "system-daemonsets"},
		{corev1.SchemeGroupVersion.WithKind("Pod"), c.System, "system-pods"}, {corev1.SchemeGroupVersion.WithKind("Event"), "", "events"},
	}
}

// Write writes the archive, a tar file with gzip. What could not be read is named in its file errors.txt; it is no error. It returns the
// error of ctx if that has ended before everything was read.
func Write(ctx context.Context, config Config, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	a := &archive{tar: tar.NewWriter(zipped), now: config.Now}
	var text bytes.Buffer
	config.Doctor(&text)
	a.add("doctor.txt", text.Bytes())
	for _, from := range config.sources() {
		config.objects(ctx, a, from)
	}
	config.logs(ctx, a)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read what the archive has: %w", err)
	}
	if len(a.unread) > 0 {
		a.add("errors.txt", []byte(strings.Join(a.unread, "\n")+"\n"))
	}
	if err := errors.Join(a.err, a.tar.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// archive collects files. The first error of a write is kept.
type archive struct {
	tar    *tar.Writer
	now    time.Time
	unread []string
	err    error
}

func (a *archive) add(name string, content []byte) {
	if a.err != nil {
		return
	}
	const mode = 0o600
	if a.err = a.tar.WriteHeader(&tar.Header{Name: "refit/" + name, Mode: mode, Size: int64(len(content)), ModTime: a.now}); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

func (a *archive) failed(what string, err error) {
	a.unread = append(a.unread, fmt.Sprintf("%s: %v", what, err))
}

// objects adds the objects of a kind as a list in YAML, or in JSON if YAML cannot have it.
func (c Config) objects(ctx context.Context, a *archive, from source) {
	read := c.list
	if from.kind.Kind == "Event" {
		read = c.events
	}
	items, missing, err := read(ctx, from)
	if err != nil {
		a.failed(from.file, err)
		return
	}
	if missing != "" {
		a.unread = append(a.unread, from.file+": "+missing)
	}
	for i := range items {
		clean(items[i].Object)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	content, err := yaml.Marshal(list)
	extension := ".yaml"
	if err != nil { // text of others may have characters that YAML does not allow
		content, err = json.MarshalIndent(list, "", "  ")
		extension = ".json"
	}
	if err != nil {
		a.failed(from.file, err)
		return
	}
	a.add("objects/"+from.file+extension, content)
}

// list returns the first objects of a kind, and which are missing; empty if none are.
func (c Config) list(ctx context.Context, from source) (items []unstructured.Unstructured, missing string, err error) {
	list, err := c.page(ctx, from, "")
	if err != nil {
		return nil, "", err
	}
	if list.GetContinue() != "" {
		missing = fmt.Sprintf("only the first %d", most)
	}
	return list.Items, missing, nil
}

// events is list for the Events of Refit, for which it searches all namespaces.
func (c Config) events(ctx context.Context, from source) (items []unstructured.Unstructured, missing string, err error) {
	items = []unstructured.Unstructured{}
	next := ""
	for range pages {
		list, err := c.page(ctx, from, next)
		switch {
		case err != nil && next != "":
			return items, fmt.Sprintf("only the first %d of Refit: %v", len(items), err), nil
		case err != nil:
			return nil, "", err
		}
		for i := range list.Items {
			if c.ofRefit(&list.Items[i]) {
				items = append(items, list.Items[i])
			}
		}
		next = list.GetContinue()
		switch {
		case len(items) > most, len(items) == most && next != "":
			return items[:most], fmt.Sprintf("only the first %d of Refit", most), nil
		case next == "":
			return items, "", nil
		}
	}
	return items, fmt.Sprintf("only what is of Refit among the first %d", pages*most), nil
}

// page reads a part of the objects of a kind. next is where it begins; empty for the first one.
func (c Config) page(ctx context.Context, from source, next string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(from.kind.GroupVersion().WithKind(from.kind.Kind + "List"))
	return list, c.API.List(ctx, list, client.InNamespace(from.namespace), client.Limit(most), client.Continue(next))
}

// ofRefit reports whether an Event is by Refit, or about an object in its namespace.
func (c Config) ofRefit(event *unstructured.Unstructured) bool {
	component, _, _ := unstructured.NestedString(event.Object, "source", "component")
	reporter, _, _ := unstructured.NestedString(event.Object, "reportingComponent")
	return event.GetNamespace() == c.System || strings.HasPrefix(component, "refit") || strings.HasPrefix(reporter, "refit")
}

// removed stands for what is not in the archive.
const removed = "(removed)"

// clean removes from an object what may be confidential, and what is of no use.
func clean(fields map[string]any) {
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	withoutValues(fields)
}

// withoutValues removes the values of all environment variables.
func withoutValues(value any) {
	switch of := value.(type) {
	case map[string]any:
		if env, ok := of["env"].([]any); ok {
			for _, variable := range env {
				if v, ok := variable.(map[string]any); ok && v["value"] != nil {
					v["value"] = removed
				}
			}
		}
		for _, field := range of {
			withoutValues(field)
		}
	case []any:
		for _, item := range of {
			withoutValues(item)
		}
	}
}

// logs adds the logs of the containers of Refit, and of their previous instances.
func (c Config) logs(ctx context.Context, a *archive) {
	var pods corev1.PodList
	if err := c.API.List(ctx, &pods, client.InNamespace(c.System), client.Limit(most)); err != nil {
		a.failed("logs", err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, status := range pod.Status.ContainerStatuses {
			c.log(ctx, a, &pod.ObjectMeta, status.Name, false)
			if status.RestartCount > 0 {
				c.log(ctx, a, &pod.ObjectMeta, status.Name, true)
			}
		}
	}
}

func (c Config) log(ctx context.Context, a *archive, pod *metav1.ObjectMeta, container string, previous bool) {
	name := "logs/" + pod.Name + "-" + container
	if previous {
		name += "-previous"
	}
	stream, err := c.Logs(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)), Timestamps: true,
	})
	if err != nil {
		a.failed(name, err)
		return
	}
	defer stream.Close()
	content, err := io.ReadAll(io.LimitReader(stream, logBytes))
	if err != nil {
		a.failed(name, err)
	}
	a.add(name+".log", content)
}
