// Command push sends a packaged chart to a registry as helm push does, and prints the digest of its manifest. The date in the manifest is given,
// so that the same package gets the same digest wherever it is pushed.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/registry"
)

func main() {
	chart := flag.String("chart", "", "the package, as refit-1.2.3.tgz")
	to := flag.String("to", "", "folder in the registry, as HOST/FOLDER/charts")
	created := flag.Int64("created", 0, "date of the manifest, in seconds since 1970")
	plainHTTP := flag.Bool("plain-http", false, "the registry speaks HTTP without TLS")
	flag.Parse()
	digest, err := push(*chart, *to, time.Unix(*created, 0).UTC(), *plainHTTP)
	if err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// push uses the credentials of helm registry login, or of docker login.
func push(path, to string, created time.Time, plainHTTP bool) (string, error) {
	chart, err := loader.LoadFile(path)
	if err != nil {
		return "", fmt.Errorf("load chart: %w", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read chart: %w", err)
	}
	options := []registry.ClientOption{registry.ClientOptWriter(os.Stderr)}
	if plainHTTP {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return "", fmt.Errorf("client of %s: %w", to, err)
	}
	target := strings.TrimSuffix(to, "/") + "/" + chart.Metadata.Name + ":" + chart.Metadata.Version
	result, err := client.Push(content, target, registry.PushOptCreationTime(created.Format(time.RFC3339)))
	if err != nil {
		return "", fmt.Errorf("push %s: %w", target, err)
	}
	return result.Manifest.Digest, nil
}
