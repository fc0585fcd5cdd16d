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

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/plugin/config"
)

const (
	// quietPeriod is how long the file must be unchanged before it is read.
	quietPeriod = 200 * time.Millisecond
	// maxConfig is the maximum size of a ConfigMap, in bytes.
	maxConfig = 1 << 20
	// collectAt is the value of GOGC: the heap is small, and memory matters more than CPU.
	collectAt = 50
	// heapShare is the heap's share of the configured memory. The rest is for memory outside of the heap.
	heapShare = 0.8
)

// readConfig reads the file and returns its configuration with the digest of its text. Plugins wait for values of the pod
// only at the start, and only if the pod will be read when the API server responds.
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

// watchConfig reloads the file when it has changed. It watches the folder, because kubelet changes a mounted ConfigMap by
// swapping the link ..data in it.
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
	timer := time.NewTimer(quietPeriod) // the file may have changed since it was read
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
				timer.Reset(quietPeriod)
			}
		case err := <-watcher.Errors:
			s.logger.Warn("watch of the configuration", "err", err)
			timer.Reset(quietPeriod)
		case <-changes:
			if s.awaiting {
				timer.Reset(0)
			}
		case <-timer.C:
			if s.awaiting && s.feed.latest() != nil {
				digest = "" // the same text has another meaning now
			}
			digest = s.reloadConfig(ctx, digest)
		}
	}
}

// reloadConfig returns the digest of the file. If the file is invalid, the previous configuration stays in force.
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
		s.sendEvent(result.Failed, "ConfigInvalid", "the configuration before stays in force: "+err.Error())
		return digest
	}
	said := "configuration " + digest[:12] + " is in force"
	if state.Later = startOnly(s.first, file); len(state.Later) > 0 {
		s.logger.Warn("part of the configuration waits for a restart of the sidecar", "keys", state.Later)
		said += "; a restart of the sidecar is needed for " + strings.Join(state.Later, ", ")
	}
	s.state.setConfig(state)
	s.logger.Info("configuration loaded", "file", state.File, "digest", digest)
	s.sendEvent(result.Succeeded, "ConfigReloaded", said)
	s.test.retest()
	return digest
}

// startOnly returns the keys that differ between two files and that are only read at start.
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

// applyResourceLimits sets the configured limits of this process.
func (s *sidecar) applyResourceLimits(file *config.File) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	for name, text := range file.Resources {
		quantity, err := foreign.Quantity(text)
		if err != nil {
			continue // the package config has refused it
		}
		switch strings.ToLower(name) {
		case "memory":
			debug.SetMemoryLimit(int64(float64(quantity.Value()) * heapShare))
		case "cpu":
			runtime.GOMAXPROCS(max(1, int(math.Ceil(quantity.AsApproximateFloat64()))))
		}
	}
}
