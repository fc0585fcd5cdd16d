package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/hack/terminal/film"
	"github.com/refit-project/refit/hack/timeout"
)

const (
	columns = 80
	lines   = 24
	title   = "kubectl refit restarts and updates the pods of a Deployment in place"
	// commandTimeout is for one command, on a machine of ordinary speed.
	commandTimeout = 2 * time.Minute
)

//go:embed web.yaml
var manifest []byte

// columnsFile has the columns of getPods.
//
//go:embed columns
var columnsFile []byte

const getPods = "kubectl get pods -o custom-columns-file=columns"

// commands are recorded one after another. $POD is replaced by the name of a pod.
var commands = []string{
	getPods,
	"kubectl refit restart deployment/web",
	getPods,
	"kubectl refit set image deployment/web app=nginx:1.23",
	getPods,
	"kubectl refit why $POD",
}

// session is the Deployment and how the commands reach it.
type session struct {
	*demokit.Demo
	api *demokit.Client
	web *appsv1.Deployment
}

func newSession(kit *demokit.Demo) (*session, error) {
	api, err := kit.Connect(appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	s := &session{Demo: kit, api: api, web: &appsv1.Deployment{}}
	if err := yaml.UnmarshalStrict(manifest, s.web); err != nil {
		return nil, fmt.Errorf("read web.yaml: %w", err)
	}
	return s, nil
}

// setUp creates the Deployment instead of what an earlier recording has left, and waits until its pods are ready.
func (s *session) setUp(ctx context.Context) error {
	if err := s.api.Remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.web.Namespace}}); err != nil {
		return err
	}
	if err := s.api.CreateNamespace(ctx, s.web.Namespace); err != nil {
		return err
	}
	if err := s.api.Create(ctx, s.web); err != nil {
		return fmt.Errorf("create Deployment web: %w", err)
	}
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(s.web), s.web)
		return s.web.Status.AvailableReplicas == *s.web.Spec.Replicas, err
	})
	if err != nil {
		return fmt.Errorf("wait for the pods of Deployment web: %w", err)
	}
	return nil
}

// record runs the commands with the namespace of the Deployment as default.
func (s *session) record(ctx context.Context) (recording *cast.Recording, err error) {
	folder, err := os.MkdirTemp("", "refit-terminal-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pod, err := s.prepare(ctx, folder)
	if err != nil {
		return nil, err
	}
	r := cast.NewRecorder(title, columns, lines, folder, "KUBECONFIG="+filepath.Join(folder, "kubeconfig"),
		"PATH="+filepath.Dir(s.Kubectl)+":"+s.Programs()+":"+os.Getenv("PATH"))
	r.Pause = film.MaxIdle
	for _, command := range commands {
		limited, cancel := context.WithTimeout(ctx, timeout.Scaled(commandTimeout))
		err := r.Run(limited, os.Expand(command, func(string) string { return pod }))
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return &r.Recording, nil
}

// prepare writes the files of the commands into a folder, and returns the name of a pod.
func (s *session) prepare(ctx context.Context, folder string) (pod string, err error) {
	config, err := s.RunKubectl(ctx, "", "config", "view", "--raw", "--flatten", "--minify")
	if err != nil {
		return "", err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	err = errors.Join(os.WriteFile(kubeconfig, []byte(config), 0o600), os.WriteFile(filepath.Join(folder, "columns"), columnsFile, 0o600))
	if err != nil {
		return "", err
	}
	if _, err := s.RunKubectl(ctx, "", "config", "set-context", "--kubeconfig="+kubeconfig, "--current", "--namespace="+s.web.Namespace); err != nil {
		return "", err
	}
	return s.RunKubectl(ctx, "", "get", "pods", "--namespace="+s.web.Namespace, "--output=jsonpath={.items[0].metadata.name}")
}
