package sidecarmode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/sidecarmode/config"
)

const (
	// settle is waited after a change of the file for more of it.
	settle = 200 * time.Millisecond
	// maxConfig is what a ConfigMap can hold, in bytes.
	maxConfig = 1 << 20
	// collectAt is by how many percent the heap may grow until it is collected: it is small, and memory is what counts.
	collectAt = 50
	// heapShare of the memory that the configuration allows; the rest is for what is no heap.
	heapShare = 0.8
)

// readConfig reads the file. The digest is of its text. Plugins wait for values of the pod at the start only, and only if the
// pod will be read when the API server responds.
func (s *sidecar) readConfig() (file *config.File, digest string, err error) {
	path := s.config.file()
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxConfig {
		err = fmt.Errorf("%s: %d bytes, more than %d", path, info.Size(), maxConfig)
	}
	if err != nil {
		return nil, "", fmt.Errorf("configuration: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("configuration: %w", err)
	}
	sum := sha256.Sum256(text)
	file, err = config.Parse(path, text, s.manager.Types(), config.NewLookup(os.LookupEnv, s.feed.latest()))
	if s.awaiting = err == nil && file.Awaits() != nil; s.awaiting && (s.first != nil || !s.podExpected) {
		err = file.Awaits()
	}
	if err != nil {
		err = fmt.Errorf("configuration: %w", config.WithoutText(err))
	}
	return file, hex.EncodeToString(sum[:]), err
}

// watchConfig puts the file in force again when it has changed. kubelet changes a mounted ConfigMap by swapping
// the link ..data in the folder, so that is what is watched.
func (s *sidecar) watchConfig(ctx context.Context, digest string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer watcher.Close() //nolint:errcheck // nothing is lost by it
	dir := filepath.Dir(s.config.file())
	if err := watcher.Add(dir); err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	changes, end := s.feed.changes()
	defer end()
	timer := time.NewTimer(settle) // it may have changed since it was read
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return errors.New("watch of the configuration has ended")
			}
			if event.Op != fsnotify.Chmod {
				timer.Reset(settle)
			}
		case err := <-watcher.Errors:
			s.logger.Warn("watch of the configuration", "err", err)
			timer.Reset(settle)
		case <-changes:
			if s.awaiting {
				timer.Reset(0)
			}
		case <-timer.C:
			if s.awaiting && s.feed.latest() != nil {
				digest = "" // the same text means something else now
			}
			digest = s.reloadConfig(ctx, digest)
		}
	}
}

// reloadConfig returns the digest of what it has seen. A file that cannot be used leaves the one before in force.
func (s *sidecar) reloadConfig(ctx context.Context, before string) string {
	file, digest, err := s.readConfig()
	if digest != "" && digest == before {
		return before
	}
	state := configState{File: s.config.file(), Digest: digest, Loaded: time.Now()}
	if err == nil {
		s.applyResourceLimits(file)
		err = s.manager.LoadConfig(ctx, file)
	}
	if err != nil {
		state.Error = foreign.Cut(err.Error(), result.MaxMessage)
		s.state.setConfig(state)
		s.logger.Error("configuration not loaded, the previous one stays in use", "err", err)
		s.tell(result.Failed, "ConfigInvalid", "the configuration before stays in force: "+err.Error())
		return digest
	}
	said := "configuration " + digest[:12] + " is in force"
	if state.Later = startOnly(s.first, file); len(state.Later) > 0 {
		s.logger.Warn("part of the configuration waits for a restart of the sidecar", "keys", state.Later)
		said += "; a restart of the sidecar is needed for " + strings.Join(state.Later, ", ")
	}
	s.state.setConfig(state)
	s.logger.Info("configuration loaded", "file", state.File, "digest", digest)
	s.tell(result.Succeeded, "ConfigReloaded", said)
	s.test.again()
	return digest
}

// startOnly names the keys that differ between two files and that only the start reads.
func startOnly(first, now *config.File) []string {
	var keys []string
	for _, k := range []struct {
		name   string
		differ bool
	}{
		{"server", first.Server != now.Server},
		{"health", first.Health != now.Health},
		{"selfTestCondition", first.SelfTestCondition != now.SelfTestCondition},
		{"procRoot", first.ProcRoot != now.ProcRoot},
	} {
		if k.differ {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// applyResourceLimits sets the limits that the configuration has for this process.
func (s *sidecar) applyResourceLimits(file *config.File) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	for name, text := range file.Resources {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			continue // config has refused it
		}
		switch strings.ToLower(name) {
		case "memory":
			debug.SetMemoryLimit(int64(float64(quantity.Value()) * heapShare))
		case "cpu":
			runtime.GOMAXPROCS(max(1, int(math.Ceil(quantity.AsApproximateFloat64()))))
		}
	}
}
