package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Source is the commit that is released.
type Source struct {
	Commit  string
	Created time.Time // of the commit
	// Toolchain is the compiler that go.mod names, as go1.2.3.
	Toolchain string
}

// source reads it from the checkout, which has to be clean.
func source(ctx context.Context, root string, dirty bool) (Source, error) {
	changes, err := output(ctx, root, "git", "status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	if changes != "" && !dirty {
		return Source{}, fmt.Errorf("the checkout has changes that are not committed:\n%s", changes)
	}
	commit, err := output(ctx, root, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return Source{}, err
	}
	hash, date, _ := strings.Cut(commit, " ")
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("date of commit %s: %w", hash, err)
	}
	text, err := output(ctx, root, "go", "mod", "edit", "-json")
	if err != nil {
		return Source{}, err
	}
	var module struct{ Toolchain string }
	if err := json.Unmarshal([]byte(text), &module); err != nil {
		return Source{}, fmt.Errorf("read go.mod: %w", err)
	}
	if module.Toolchain == "" {
		return Source{}, fmt.Errorf("%s: no toolchain line: another compiler gives other bytes", filepath.Join(root, "go.mod"))
	}
	return Source{Commit: hash, Created: time.Unix(seconds, 0).UTC(), Toolchain: module.Toolchain}, nil
}

var (
	releaseVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	appVersion     = regexp.MustCompile(`(?m)^appVersion: (v\S+)$`)
)

// version checks the version that was given, or makes one for a commit that is none.
func version(root, given, commit string) (string, error) {
	if given == "" {
		chart, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "Chart.yaml"))
		if err != nil {
			return "", fmt.Errorf("find version: %w", err)
		}
		found := appVersion.FindSubmatch(chart)
		if found == nil {
			return "", fmt.Errorf("find version: Chart.yaml has no appVersion")
		}
		return fmt.Sprintf("%s-dev.g%.12s", found[1], commit), nil
	}
	if !releaseVersion.MatchString(given) {
		return "", fmt.Errorf("version %q: want vMAJOR.MINOR.PATCH, with -PRERELEASE if it is one", given)
	}
	return given, nil
}

// changes is the part of CHANGELOG.md about a version; of what is not released yet if there is none.
func changes(changelog, version string) (string, error) {
	for _, title := range []string{strings.TrimPrefix(version, "v"), "Unreleased"} {
		_, rest, ok := strings.Cut(changelog, "\n## ["+title+"]")
		if !ok {
			continue
		}
		_, rest, _ = strings.Cut(rest, "\n")
		section, _, _ := strings.Cut(rest, "\n## [")
		return strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has neither %s nor Unreleased", version)
}

// output of a short command.
func output(ctx context.Context, dir string, argv ...string) (string, error) {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = dir
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(argv, " "), err, out, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
