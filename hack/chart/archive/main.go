// Command archive packages the chart as helm package does, with the version, the date and the images of a release: the same chart and
// arguments give the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

// release is what the packaged chart is of.
type release struct {
	version string // as v1.2.3; empty: what Chart.yaml has
	created time.Time
	images  images
}

func main() {
	var of release
	chart := flag.String("chart", filepath.Join("..", "..", "deploy", "chart"), "folder of the chart")
	flag.StringVar(&of.version, "version", "", "version of the release, as v1.2.3; empty: what Chart.yaml has")
	created := flag.Int64("created", 0, "date of the files, in seconds since 1970")
	flag.StringVar(&of.images.repository, "repository", "", "name in front of the images' own, as HOST/FOLDER; empty: what values.yaml has")
	flag.Func("digest", "digest of an image, as NAME=sha256:...; one flag for each image", of.images.add)
	out := flag.String("out", ".", "folder that the archive goes to")
	flag.Parse()
	of.created = time.Unix(*created, 0).UTC()
	path, err := archive(*chart, of, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// archive writes NAME-VERSION.tgz and returns its path.
func archive(folder string, of release, out string) (string, error) {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return "", fmt.Errorf("load chart: %w", err)
	}
	if of.version != "" {
		// The version of a chart has no v, the tags of the images do.
		chart.Metadata.Version, chart.Metadata.AppVersion = strings.TrimPrefix(of.version, "v"), of.version
	}
	if err := of.images.pin(chart); err != nil {
		return "", fmt.Errorf("pin images: %w", err)
	}
	if err := annotate(chart, of.images); err != nil {
		return "", fmt.Errorf("annotations for Artifact Hub: %w", err)
	}
	chart.StampModTimes(of.created)
	path, err := util.Save(chart, out)
	if err != nil {
		return "", fmt.Errorf("package chart: %w", err)
	}
	return path, nil
}
