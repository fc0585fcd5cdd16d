package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

var source = filepath.Join("..", "..", "..", "deploy", "chart")

func TestPackagedChartHasTheVersionOfTheRelease(t *testing.T) {
	t.Parallel()
	path, err := archive(source, release{version: "v1.2.3-rc.1", created: time.Unix(1_700_000_000, 0)}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) != "refit-1.2.3-rc.1.tgz" {
		t.Errorf("written to %s", path)
	}
	chart, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if chart.Metadata.Version != "1.2.3-rc.1" || chart.Metadata.AppVersion != "v1.2.3-rc.1" {
		t.Errorf("packaged %+v", chart.Metadata)
	}
	if len(chart.Templates) < 20 || len(chart.Files) < 5 {
		t.Errorf("%d templates, %d other files", len(chart.Templates), len(chart.Files))
	}
}

func TestSameChartGivesTheSameArchive(t *testing.T) {
	t.Parallel()
	deploy := t.TempDir()
	moved := filepath.Join(deploy, "chart")
	for _, folder := range []string{"chart", "crd"} { // the chart links to the CRDs
		if err := os.CopyFS(filepath.Join(deploy, folder), os.DirFS(filepath.Join(source, "..", folder))); err != nil { // with other dates
			t.Fatal(err)
		}
	}
	var archives [][]byte
	for _, folder := range []string{source, moved} {
		path, err := archive(folder, released(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, content)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same chart differ")
	}
}

func TestInvalidVersionIsRefused(t *testing.T) {
	t.Parallel()
	if path, err := archive(source, release{version: "latest"}, t.TempDir()); err == nil {
		t.Errorf("packaged %s", path)
	}
}
