// Package contentstore reads the progress of a pull from the content store of containerd, because CRI does not report it.
package contentstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/grpc/metadata"

	"github.com/refit-project/refit/internal/foreign"
)

// CRI does not report a pull before its end. containerd keeps downloads in its content store, whose service is on the same
// socket: an "ingest" for each blob that is being written, and labels with the repository of a blob (containerd,
// docs/content-flow.md).
const (
	namespaceHeader = "containerd-namespace"
	namespaceCRI    = "k8s.io"
	labelSource     = "containerd.io/distribution.source." // and the registry's host; the value lists repositories
	labelConfig     = "containerd.io/gc.ref.content.config"
	maxManifest     = 4 << 20 // bytes; containerd accepts 8 MiB
	maxBlobs        = 1000    // of one image
	maxListed       = 1000    // manifests and blobs of one repository
)

// Progress of a pull in transferred, compressed bytes. The zero value means that nothing is known yet.
type Progress struct {
	Pulled, Total int64
}

// pullMeter reads the progress of one pull.
type pullMeter struct {
	content                  contentapi.ContentClient
	callError                CallError
	host, repository, digest string
	since                    time.Time
	manifests                map[string][]blob
	written                  map[string]int64 // bytes last seen, by digest
	done                     map[string]bool
}

type blob struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// ErrTooLarge is the error for content beyond the limits for a runtime.
var ErrTooLarge = errors.New("too large")

// CallError translates the error of a call about a subject.
type CallError func(ctx context.Context, method, subject string, err error) error

// MeterPull returns a function that returns the progress of a pull that began at a time. digest is empty unless the image
// is pulled by digest. Concurrent pulls of two tags of a repository are distinguished only by digest; otherwise both get
// the sum. The function is not safe for concurrent use.
func MeterPull(content contentapi.ContentClient, callError CallError, registry, repository, digest string, since time.Time) func(context.Context) (Progress, error) {
	host := registry
	if parsed, err := url.Parse("//" + registry); err == nil {
		host = parsed.Hostname() // the label has no port
	}
	m := &pullMeter{
		content: content, callError: callError, host: host, repository: repository, digest: digest, since: since,
		manifests: map[string][]blob{}, written: map[string]int64{}, done: map[string]bool{},
	}
	return m.read
}

func (m *pullMeter) read(ctx context.Context) (Progress, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, namespaceHeader, namespaceCRI)
	blobs, err := m.blobs(ctx)
	if err != nil || len(blobs) == 0 {
		return Progress{}, err
	}
	active, err := m.active(ctx)
	if err != nil {
		return Progress{}, err
	}
	var progress Progress
	for _, b := range blobs {
		progress.Total += b.Size
		progress.Pulled += m.pulled(ctx, b, active)
	}
	return progress, nil
}

// pulled returns how many bytes of a blob have been transferred. While containerd commits a blob, for as long as a sync of
// its database takes, the blob is neither an ingest nor content: the bytes last seen count then.
func (m *pullMeter) pulled(ctx context.Context, b blob, active map[string]int64) int64 {
	offset, writing := active[b.Digest]
	switch {
	case m.done[b.Digest]:
	case writing:
		m.written[b.Digest] = min(offset, b.Size)
	case m.has(ctx, b.Digest):
		m.done[b.Digest] = true
		m.written[b.Digest] = b.Size
	}
	return m.written[b.Digest]
}

// blobs returns the blobs of the manifests that the pull has fetched.
func (m *pullMeter) blobs(ctx context.Context) ([]blob, error) {
	infos, err := m.infos(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var blobs []blob
	for _, info := range infos {
		digest := info.GetDigest()
		if _, isManifest := info.GetLabels()[labelConfig]; !isManifest ||
			(digest != m.digest && info.GetCreatedAt().AsTime().Before(m.since)) {
			continue
		}
		if _, ok := m.manifests[digest]; !ok {
			read, err := m.manifest(ctx, digest)
			if err != nil {
				return nil, err
			}
			m.manifests[digest] = read
		}
		for _, b := range m.manifests[digest] {
			if !seen[b.Digest] && b.Size > 0 {
				seen[b.Digest] = true
				blobs = append(blobs, b)
			}
		}
	}
	return blobs, nil
}

// infos returns the entries of the content store for the repository.
func (m *pullMeter) infos(ctx context.Context) ([]*contentapi.Info, error) {
	filter := fmt.Sprintf(`labels.%s~=%s`, strconv.Quote(labelSource+m.host), strconv.Quote("(^|,)"+regexp.QuoteMeta(m.repository)+"(,|$)"))
	stream, err := m.content.List(ctx, &contentapi.ListContentRequest{Filters: []string{filter}})
	if err != nil {
		return nil, m.callError(ctx, "List content", "", err)
	}
	var infos []*contentapi.Info
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, m.callError(ctx, "List content", "", err)
		}
		if infos = append(infos, res.GetInfo()...); len(infos) > maxListed {
			return nil, fmt.Errorf("list content of %s: %w: more than %d blobs", m.repository, ErrTooLarge, maxListed)
		}
	}
	slices.SortFunc(infos, func(a, b *contentapi.Info) int { return cmp.Compare(a.GetDigest(), b.GetDigest()) })
	return infos, nil
}

// manifest returns the blobs in a manifest (OCI image specification, manifest.md).
func (m *pullMeter) manifest(ctx context.Context, digest string) ([]blob, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := m.content.Read(ctx, &contentapi.ReadContentRequest{Digest: digest})
	if err != nil {
		return nil, m.callError(ctx, "Read content", digest, err)
	}
	var data []byte
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, m.callError(ctx, "Read content", digest, err)
		}
		if data = append(data, res.GetData()...); len(data) > maxManifest {
			return nil, fmt.Errorf("manifest %s: %w: larger than %d bytes", digest, ErrTooLarge, maxManifest)
		}
	}
	return parseManifest(data)
}

func parseManifest(data []byte) ([]blob, error) {
	var manifest struct {
		Config blob   `json:"config"`
		Layers []blob `json:"layers"`
	}
	if err := foreign.Object(data, &manifest); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if len(manifest.Layers) > maxBlobs {
		return nil, fmt.Errorf("read manifest: %w: %d layers", ErrTooLarge, len(manifest.Layers))
	}
	blobs := append([]blob{manifest.Config}, manifest.Layers...)
	for i := range blobs {
		blobs[i].Size = min(max(blobs[i].Size, 0), 1<<50) // untrusted numbers are added up
	}
	return blobs, nil
}

// active returns the offsets of the blobs that are being written, by digest.
func (m *pullMeter) active(ctx context.Context) (map[string]int64, error) {
	res, err := m.content.ListStatuses(ctx, &contentapi.ListStatusesRequest{})
	if err != nil {
		return nil, err
	}
	offsets := map[string]int64{}
	for _, s := range res.GetStatuses() {
		// The reference of an ingest ends with the digest, such as "layer-sha256:...".
		if i := strings.LastIndex(s.GetRef(), "sha256:"); i >= 0 {
			offsets[s.GetRef()[i:]] = max(s.GetOffset(), 0)
		}
	}
	return offsets, nil
}

func (m *pullMeter) has(ctx context.Context, digest string) bool {
	_, err := m.content.Info(ctx, &contentapi.InfoRequest{Digest: digest})
	return err == nil
}
