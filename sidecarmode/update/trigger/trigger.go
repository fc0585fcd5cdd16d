package update

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/kube/ownpod"
)

const (
	// AnnotationVersion of a ConfigMap or Secret names the version of its content; by default it is a digest.
	AnnotationVersion = "refit.dev/version"
	// settle is waited after a change of a volume for more of it.
	settle = 200 * time.Millisecond
	// maxVolume bounds what is read of a volume, in bytes. ConfigMaps and Secrets hold 1 MiB.
	maxVolume = 8 << 20
)

// watch runs one trigger until ctx ends.
func (p *Plugin) watch(ctx context.Context, t Trigger) error {
	if t.Directory != "" {
		return p.watchDirectory(ctx, t)
	}
	if p.host.API == nil {
		p.host.Logger.Warn("trigger needs an API server: left out", "configMap", t.ConfigMap, "secret", t.Secret)
		<-ctx.Done()
		return nil
	}
	ref := t.reference(p.host.Pod.Namespace)
	changes := make(chan content, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		selection := ownpod.Selection{Of: ref}
		ownpod.Follow(ctx, p.host.API, selection, func(items map[string]object) {
			if o, ok := items[ref.Name]; ok {
				offer(changes, o.content())
			}
		}, ownpod.Log(p.host.Logger, selection))
	}()
	p.pull(ctx, t, ref.String(), changes)
	<-done
	return nil
}

// reference names the object; its Name is empty for a directory.
func (t Trigger) reference(namespace string) ownpod.Reference {
	if t.Secret != "" {
		return ownpod.Reference{Version: "v1", Resource: "secrets", Namespace: namespace, Name: t.Secret}
	}
	return ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: t.ConfigMap}
}

// content is what a trigger has now.
type content struct {
	version string
	files   map[string][]byte
}

// offer replaces what has not been taken yet: only the latest counts.
func offer(changes chan content, c content) {
	select {
	case <-changes:
	default:
	}
	changes <- c
}

// object is what is needed of a ConfigMap or a Secret.
type object struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Data       map[string]string `json:"data"`       // of a Secret in base64
	BinaryData map[string][]byte `json:"binaryData"` // of a ConfigMap
	Type       string            `json:"type"`       // of a Secret
}

func (o object) content() content {
	c := content{version: o.Metadata.Annotations[AnnotationVersion], files: map[string][]byte{}}
	for key, value := range o.Data {
		c.files[key] = []byte(value)
		if o.Type != "" { // a Secret: it always has a type, and a ConfigMap has none
			if b, err := base64.StdEncoding.DecodeString(value); err == nil {
				c.files[key] = b
			}
		}
	}
	maps.Copy(c.files, o.BinaryData)
	return c
}

// pull applies what comes, the latest only, one after another.
func (p *Plugin) pull(ctx context.Context, t Trigger, from string, changes <-chan content) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-changes:
			request, err := t.request(c)
			if err == nil {
				_, err = p.apply(ctx, true, request)
			}
			if err != nil && ctx.Err() == nil {
				p.host.Logger.Warn("update from trigger failed", "from", from, "err", err)
			}
		}
	}
}

// request asks for the trigger's files, beside those that others have brought.
func (t Trigger) request(c content) (hotupdate.Request, error) {
	request := hotupdate.Request{Version: c.version, Keep: true, Trusted: true}
	digest := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(c.files)) {
		name := key
		if len(t.Files) > 0 {
			mapped, ok := t.Files[key]
			if !ok {
				continue
			}
			name = mapped
		}
		sum := sha256.Sum256(c.files[key])
		fmt.Fprintf(digest, "%s %x\n", name, sum)
		request.Sources = append(request.Sources, hotupdate.Source{Name: name, Data: c.files[key], SHA256: hex.EncodeToString(sum[:])})
	}
	if len(request.Sources) == 0 {
		return request, errors.New("no files")
	}
	if request.Version == "" {
		request.Version = "sha256-" + hex.EncodeToString(digest.Sum(nil))[:12]
	}
	return request, nil
}

// watchDirectory follows a mounted volume: kubelet swaps its link ..data.
func (p *Plugin) watchDirectory(ctx context.Context, t Trigger) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", t.Directory, err)
	}
	defer watcher.Close() //nolint:errcheck // nothing is lost by it
	if err := watcher.Add(t.Directory); err != nil {
		return fmt.Errorf("watch %s: %w", t.Directory, err)
	}
	changes := make(chan content, 1)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		p.pull(ctx, t, t.Directory, changes)
	}()
	defer func() {
		cancel()
		<-done
	}()
	look := func() {
		files, err := readVolume(t.Directory)
		if err != nil {
			p.host.Logger.Warn("volume not read", "directory", t.Directory, "err", err)
			return
		}
		offer(changes, content{files: files})
	}
	look()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return errors.New("watch has ended")
			}
			if event.Op != fsnotify.Chmod {
				timer.Reset(settle)
			}
		case err := <-watcher.Errors:
			p.host.Logger.Warn("watch of volume", "directory", t.Directory, "err", err)
			timer.Reset(settle)
		case <-timer.C:
			look()
		}
	}
}

// readVolume reads the files of a projected volume as they are at one moment: through one ..data, where there is
// one. Names that begin with two dots are kubelet's.
func readVolume(dir string) (map[string][]byte, error) {
	if data, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = data
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	left := int64(maxVolume)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(entry.Name(), "..") || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(f, left+1))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if left -= int64(len(b)); left < 0 {
			return nil, fmt.Errorf("more than %d bytes", maxVolume)
		}
		files[entry.Name()] = b
	}
	return files, nil
}
