package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/internal/console"
)

// maxContent is how much content fits into a request, in bytes: the sidecar reads 8 MiB of JSON, with the content in base64.
const maxContent = 5 << 20

// Config is the configuration of the commands.
type Config struct {
	// Client sends requests to the port of the sidecar, whatever host their URL has.
	Client *http.Client
	Token  string // of the sidecar; empty: none
	Pod    string
	Output *console.Output
	// Timeout bounds the whole command; 0: none.
	Timeout time.Duration
}

func (c Config) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("the update is %w", console.ErrTimeout))
}

// File is a new file, by its content or by a URL that the sidecar reads.
type File struct {
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
	// SHA256 of what the URL has, in hex.
	SHA256 string `json:"sha256,omitempty"`
}

// Change is what is asked for.
type Change struct {
	Version string `json:"version"`
	Files   []File `json:"files"`
	// Keep leaves other files in place.
	Keep   bool `json:"keep"`
	DryRun bool `json:"dryRun,omitempty"`
}

// ReadFiles reads the arguments NAME=FILE, or FILE for its own name.
func ReadFiles(arguments []string) ([]File, error) {
	var files []File
	size := int64(0)
	for _, argument := range arguments {
		name, path, named := strings.Cut(argument, "=")
		if !named {
			name, path = filepath.Base(argument), argument
		}
		if name == "" || path == "" {
			return nil, fmt.Errorf("%w: %q: want FILE, or NAME=FILE", console.ErrUsage, argument)
		}
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", console.ErrUsage, err)
		}
		if size += info.Size(); size > maxContent {
			return nil, fmt.Errorf("%w: the files have more than %d MiB: put them where the sidecar can read them, and use --url", console.ErrUsage, maxContent>>20)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", console.ErrUsage, err)
		}
		files = append(files, File{Name: name, Data: data})
	}
	return files, nil
}

// Update changes files, and returns when the application has them and all checks have passed.
func Update(ctx context.Context, config Config, change Change) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	config.Output.Wait("pod/%s: version %s is fetched, checked and put in place", config.Pod, change.Version)
	got, err := config.post(ctx, "/hot-update", change)
	if err != nil {
		return console.Ended(ctx, err)
	}
	switch {
	case change.DryRun:
		config.Output.Say("pod/%s: version %s would be accepted; nothing has been changed", config.Pod, change.Version)
	case !got.Changed:
		config.Output.Say("pod/%s: version %s is in use already", config.Pod, change.Version)
	default:
		config.Output.Say("pod/%s: version %s is in use: %s", config.Pod, change.Version, got.Revision)
	}
	config.notes(got)
	return nil
}

// Rollback returns to an accepted revision, by its ID or version; with neither to the one before.
func Rollback(ctx context.Context, config Config, to string) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	wanted, err := config.revision(ctx, to)
	if err != nil {
		return console.Ended(ctx, err)
	}
	got, err := config.post(ctx, "/rollback", wanted)
	if err != nil {
		return console.Ended(ctx, err)
	}
	config.Output.Say("pod/%s: back to version %s: %s", config.Pod, printable(got.Version), got.Revision)
	config.notes(got)
	return nil
}

// reference names a revision; an empty one the one before the present one.
type reference struct {
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
}

// revision returns what names the revision in a request. An ID takes precedence over a version.
func (c Config) revision(ctx context.Context, text string) (reference, error) {
	if text == "" {
		return reference{}, nil
	}
	all, err := c.revisions(ctx)
	if err != nil {
		return reference{}, err
	}
	for _, one := range all {
		if one.ID == text {
			return reference{ID: text}, nil
		}
	}
	return reference{Version: text}, nil
}

// Revisions prints the accepted revisions, the present one first.
func Revisions(ctx context.Context, config Config) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	all, err := config.revisions(ctx)
	if err != nil {
		return console.Ended(ctx, err)
	}
	if len(all) == 0 {
		config.Output.Print("pod/%s: no files have been updated yet\n", config.Pod)
		return nil
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "VERSION\tID\tFILES\tBYTES\tCREATED\t")
	for i, one := range all {
		present := ""
		if i == 0 {
			present = "present"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", printable(one.Version), printable(one.ID), one.Files, one.Size, one.Created.UTC().Format(time.RFC3339), present)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	config.Output.Print("%s", text.String())
	return nil
}

// notes prints what a user has to know beside the outcome.
func (c Config) notes(got *answer) {
	if got.ReloadSkipped != "" {
		c.Output.Print("  the program was not reloaded: %s\n", printable(got.ReloadSkipped))
	}
	if len(got.Mended) > 0 {
		c.Output.Print("  restored, since the application had changed them: %s\n", printable(strings.Join(got.Mended, ", ")))
	}
}
