package why

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/governed"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
)

// Logs reads the last lines of the previous instance of a container.
type Logs func(ctx context.Context, namespace, pod, container string, lines int64) (string, error)

// Config is the configuration of the command.
type Config struct {
	API       client.Reader
	Logs      Logs
	Namespace string
	// Containers to explain; empty for all.
	Containers []string
	// Lines is how many lines of the log of the previous instance are shown.
	Lines int64
	// Format is json, yaml or empty for text.
	Format string
}

// Run writes why the containers of a pod were restarted last.
func Run(ctx context.Context, config Config, out io.Writer, name string) error {
	var pod corev1.Pod
	if err := config.API.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: name}, &pod); err != nil {
		return err
	}
	var list v1beta1.ContainerRecreateRequestList
	err := config.API.List(ctx, &list, client.InNamespace(config.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	requests := slices.DeleteFunc(list.Items, func(r v1beta1.ContainerRecreateRequest) bool {
		uid := r.Labels[v1beta1.LabelPodUID]
		return r.Spec.PodName != name || uid != "" && uid != string(pod.UID)
	})
	for _, container := range config.Containers {
		if kubelet.Container(&pod.Spec, container) == nil {
			return fmt.Errorf("%w: pod %s has no container %s", console.ErrUsage, name, container)
		}
	}
	containers := Explain(&pod, requests, config.Containers)
	var events corev1.EventList
	err = config.API.List(ctx, &events, client.InNamespace(config.Namespace), client.MatchingFields{"involvedObject.uid": string(pod.UID)})
	if err != nil && !apierrors.IsForbidden(err) { // the other information is useful without them
		return fmt.Errorf("list Events of the pod: %w", err)
	}
	AddEvents(containers, &pod, events.Items)
	policies, err := governed.New(ctx, config.API, config.Namespace)
	if err != nil {
		return err
	}
	policy, err := policies.Policy(ctx, &pod)
	if err != nil {
		return err
	}
	AddUpdate(containers, &pod, policy)
	if config.Format != "" {
		return encode(out, config.Format, containers)
	}
	text := console.NewOutput(out, false) // it drops control characters of messages, images and logs
	text.Print("pod %s/%s %s\n", pod.Namespace, pod.Name, where(&pod))
	if message := gate.Message(&pod); message != "" {
		text.Print("  OutOfServices: %s\n", message)
	}
	if message := updateOf(&pod, policy); message != "" {
		text.Print("  %s\n", message)
	}
	for i := range containers {
		config.write(ctx, text, name, &containers[i])
	}
	return nil
}

func where(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return "is not bound to a node"
	}
	return "on node " + pod.Spec.NodeName
}

func encode(out io.Writer, format string, containers []Container) error {
	text, err := json.MarshalIndent(containers, "", "  ")
	if err == nil && format == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSpace(string(text)))
	return err
}

func (config *Config) write(ctx context.Context, text *console.Output, pod string, c *Container) {
	text.Print("\ncontainer %s: %s, %s\n", c.Name, c.State, count(c.Restarts))
	text.Print("  %s: %s\n", c.Cause, c.Message)
	for _, probe := range c.Probes {
		text.Print("  probe: %s\n", probe)
	}
	if c.Waiting != "" {
		text.Print("  waiting: %s\n", c.Waiting)
	}
	if !c.Previous || config.Lines == 0 {
		return
	}
	switch log, err := config.Logs(ctx, config.Namespace, pod, c.Name, config.Lines); {
	case err != nil: // the runtime may have removed it meanwhile
		text.Print("  the log of the previous instance cannot be read: %s\n", err)
	case kubelet.LogIsGone(log):
		text.Print("  the log of the previous instance is gone\n")
	case log == "":
		text.Print("  the log of the previous instance is empty\n")
	default:
		text.Print("  last lines of the previous instance:\n")
		for line := range strings.Lines(log) {
			text.Print("    %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
}

func count(restarts int32) string {
	if restarts == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", restarts)
}
