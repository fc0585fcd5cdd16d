// Command archive packages the chart as helm package does, with the version and the date of a release: the same chart and
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

func main() {
	chart := flag.String("chart", filepath.Join("..", "..", "deploy", "chart"), "folder of the chart")
	version := flag.String("version", "", "version of the release, as v1.2.3; empty: what Chart.yaml has")
	created := flag.Int64("created", 0, "date of the files, in seconds since 1970")
	out := flag.String("out", ".", "folder that the archive goes to")
	flag.Parse()
	path, err := archive(*chart, *version, time.Unix(*created, 0).UTC(), *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// archive writes NAME-VERSION.tgz and returns its path.
func archive(folder, version string, created time.Time, out string) (string, error) {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return "", fmt.Errorf("load chart: %w", err)
	}
	if version != "" {
		// The version of a chart has no v, the tags of the images do.
		chart.Metadata.Version, chart.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
	}
	chart.StampModTimes(created)
	path, err := util.Save(chart, out)
	if err != nil {
		return "", fmt.Errorf("package chart: %w", err)
	}
	return path, nil
}
