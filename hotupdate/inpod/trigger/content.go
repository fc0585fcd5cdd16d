package trigger

import (
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

	"github.com/refit-project/refit/hotupdate"
)

const (
	// AnnotationVersion of a ConfigMap or Secret names the version of its content; by default it is a digest.
	AnnotationVersion = "refit.dev/content-version"
	// maxVolume bounds the content of a volume, in bytes. ConfigMaps and Secrets hold 1 MiB.
	maxVolume = 8 << 20
)

// content is the current content of a trigger.
type content struct {
	version string
	files   map[string][]byte
}

// object has the fields of a ConfigMap or a Secret that are needed.
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

// request returns a request for the trigger's files. It keeps the files of other sources.
func (c Config) request(name string, now content) hotupdate.Request {
	request := hotupdate.Request{Version: now.version, Keep: true, Trusted: true, Trigger: name}
	digest := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(now.files)) {
		path := key
		if len(c.Files) > 0 {
			mapped, ok := c.Files[key]
			if !ok {
				continue
			}
			path = mapped
		}
		sum := sha256.Sum256(now.files[key])
		fmt.Fprintf(digest, "%s %x\n", path, sum)
		request.Sources = append(request.Sources, hotupdate.Source{Name: path, Data: now.files[key], SHA256: hex.EncodeToString(sum[:])})
	}
	if request.Version == "" {
		request.Version = "sha256-" + hex.EncodeToString(digest.Sum(nil))[:12]
	}
	fmt.Fprintf(digest, "%q", request.Version)
	request.TriggerDigest = hex.EncodeToString(digest.Sum(nil))
	return request
}

// readVolume reads the files of a projected volume as of one moment: through one ..data link, if there is one. Names that
// begin with two dots belong to kubelet.
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
