package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errField  = errors.New("field of the downward API is not known")
	errFolder = errors.New("a path with a folder is not possible in a volume on this node")
	errSource = errors.New("projected source is not known")
)

// token of a service account, bound to a pod.
type token struct {
	value string
	renew time.Time
}

func volumeName(pod *corev1.Pod, volume corev1.Volume) string {
	return string(pod.UID) + "-" + volume.Name
}

// sourcesOf is a volume with content of the API as a projected one.
func sourcesOf(v corev1.Volume) (sources []corev1.VolumeProjection, mode *int32, ok bool) {
	switch {
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}}}, v.ConfigMap.DefaultMode, true
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}}}, v.Secret.DefaultMode, true
	case v.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}}}, v.DownwardAPI.DefaultMode, true
	case v.Projected != nil:
		return v.Projected.Sources, v.Projected.DefaultMode, true
	}
	return nil, nil, false
}

// copyVolumes writes the content of the volumes of a pod, as it is now, to Secrets of the backend. It reports whether it was another.
func (p *provider) copyVolumes(ctx context.Context, pod *corev1.Pod) (bool, error) {
	changed := false
	for _, volume := range pod.Spec.Volumes {
		sources, _, ok := sourcesOf(volume)
		if !ok {
			continue
		}
		files := map[string][]byte{}
		for _, source := range sources {
			content, err := p.content(ctx, pod, source)
			if err != nil {
				return changed, fmt.Errorf("volume %s: %w", volume.Name, err)
			}
			maps.Copy(files, content)
		}
		for path := range files {
			if strings.Contains(path, "/") {
				return changed, fmt.Errorf("volume %s: %q: %w", volume.Name, path, errFolder)
			}
		}
		written, err := p.writeSecret(ctx, pod, volumeName(pod, volume), files)
		if err != nil {
			return changed, err
		}
		changed = changed || written
	}
	return changed, nil
}

func (p *provider) writeSecret(ctx context.Context, pod *corev1.Pod, name string, files map[string][]byte) (bool, error) {
	secrets := p.client.CoreV1().Secrets(p.namespace)
	old, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{uidLabel: string(pod.UID)}}, Data: files}
		_, err = secrets.Create(ctx, made, metav1.CreateOptions{})
	case err == nil && maps.EqualFunc(old.Data, files, bytes.Equal):
		return false, nil
	case err == nil:
		old.Data = files
		_, err = secrets.Update(ctx, old, metav1.UpdateOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("write Secret %s of the backend: %w", name, err)
	}
	return true, nil
}

func (p *provider) content(ctx context.Context, pod *corev1.Pod, source corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case source.ConfigMap != nil:
		object, err := p.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, source.ConfigMap.Optional)
		}
		data := maps.Clone(object.BinaryData)
		if data == nil {
			data = map[string][]byte{}
		}
		for key, text := range object.Data {
			data[key] = []byte(text)
		}
		return selected(data, source.ConfigMap.Items), nil
	case source.Secret != nil:
		object, err := p.client.CoreV1().Secrets(pod.Namespace).Get(ctx, source.Secret.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, source.Secret.Optional)
		}
		return selected(object.Data, source.Secret.Items), nil
	case source.DownwardAPI != nil:
		return downward(pod, source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		value, err := p.token(ctx, pod, source.ServiceAccountToken)
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(value)}, err
	}
	return nil, errSource
}

func missing(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("read source: %w", err)
}

func selected(data map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return data
	}
	files := map[string][]byte{}
	for _, item := range items {
		if content, ok := data[item.Key]; ok {
			files[item.Path] = content
		}
	}
	return files
}

func downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("%s: %w", item.Path, errField)
		}
		value, err := field(pod, item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("%s: %w", path, errField)
}

// token requests a token that is bound to the pod, and another one after four fifths of its lifetime, as kubelet does.
func (p *provider) token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (string, error) {
	key := strings.Join([]string{string(pod.UID), source.Audience, source.Path}, "/")
	p.mu.Lock()
	kept := p.tokens[key]
	p.mu.Unlock()
	now := time.Now()
	if now.Before(kept.renew) {
		return kept.value, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	got, err := p.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	life := got.Status.ExpirationTimestamp.Sub(now)
	fresh := token{value: got.Status.Token, renew: now.Add(life / 5 * 4)}
	p.mu.Lock()
	p.tokens[key] = fresh
	p.mu.Unlock()
	return fresh.value, nil
}
