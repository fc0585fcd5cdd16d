package credentialprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

const (
	// timeout limits a call. Kubelet allows a minute.
	timeout = 30 * time.Second
	// afterKill is how long to wait for the output of a killed plugin, which a child process may keep open.
	afterKill = time.Second
	// maxOutput limits the output of a plugin, in bytes.
	maxOutput = 1 << 20
	// maxEntries limits the cached answers of one plugin.
	maxEntries = 256
)

// Login is one user name and password from the answer of a plugin.
type Login struct {
	// Match is a pattern of images, for example registry.example.com/team.
	Match              string
	Username, Password string
}

// Plugins runs the plugins of a configuration file. Create it with New.
type Plugins struct{ list []*plugin }

// Logins runs every plugin that is configured for the image, which is written with its registry. It returns the answers
// together with errors of other plugins. Concurrent calls of one plugin wait for each other.
func (p *Plugins) Logins(ctx context.Context, image string) ([]Login, error) {
	var all []Login
	var errs []error
	for _, plugin := range p.list {
		if !plugin.matches(image) {
			continue
		}
		logins, err := plugin.logins(ctx, image)
		if err != nil {
			errs = append(errs, fmt.Errorf("credential provider %s: %w", plugin.Name, err))
		}
		all = append(all, logins...)
	}
	return all, errors.Join(errs...)
}

type plugin struct {
	provider
	program string

	mu   sync.Mutex
	kept map[string]answer // by cache key
}

// answer is the cached answer of a plugin.
type answer struct {
	logins []Login
	until  time.Time
}

func newPlugin(p provider, program string) *plugin {
	return &plugin{provider: p, program: program, kept: map[string]answer{}}
}

func (p *plugin) matches(image string) bool {
	for _, pattern := range p.MatchImages {
		if Matches(pattern, image) {
			return true
		}
	}
	return false
}

// cacheKeyTypes are the types of the keys under which an answer may be cached, in the order in which kubelet looks for one.
var cacheKeyTypes = []string{"Image", "Registry", "Global"}

// cacheKey returns the key of a type for an image.
func cacheKey(kind, image string) string {
	switch registry, _, _ := strings.Cut(image, "/"); kind {
	case "Image":
		return "image " + image
	case "Registry":
		return "registry " + registry
	}
	return "global"
}

// logins returns the answer of the plugin for an image. Nothing waits for a call of the plugin for another image.
func (p *plugin) logins(ctx context.Context, image string) ([]Login, error) {
	if logins, ok := p.cached(image, time.Now()); ok {
		return logins, nil
	}
	output, err := p.call(ctx, image)
	if err != nil {
		return nil, err
	}
	said, err := read(output)
	if err != nil {
		return nil, err
	}
	keep := p.DefaultCacheDuration.Duration
	if said.CacheDuration != nil {
		keep = said.CacheDuration.Duration
	}
	if keep = min(keep, maxCache); keep > 0 {
		p.keep(cacheKey(said.CacheKeyType, image), answer{logins: said.logins(), until: time.Now().Add(keep)})
	}
	return said.logins(), nil
}

// cached returns the answer that is kept for an image. It forgets those whose time has passed.
func (p *plugin) cached(image string, now time.Time) ([]Login, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.kept, func(_ string, kept answer) bool { return !now.Before(kept.until) })
	for _, kind := range cacheKeyTypes {
		if kept, ok := p.kept[cacheKey(kind, image)]; ok {
			return kept.logins, true
		}
	}
	return nil, false
}

func (p *plugin) keep(key string, said answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) < maxEntries {
		p.kept[key] = said
	}
}

// call runs the plugin. The error contains its standard error.
func (p *plugin) call(ctx context.Context, image string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := json.Marshal(map[string]string{"apiVersion": protocolVersion, "kind": kindRequest, "image": image})
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, p.program, p.Args...)
	command.Env = os.Environ()
	for _, v := range p.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	output, said := bounded{filled: cancel}, bounded{}
	command.Stdin, command.Stdout, command.Stderr, command.WaitDelay = bytes.NewReader(request), &output, &said, afterKill
	err = command.Run()
	switch {
	case output.full:
		return nil, fmt.Errorf("wrote more than %d bytes", maxOutput)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("has not answered within %s: %w", timeout, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, said.line())
	}
	return output.kept.Bytes(), nil
}

// bounded keeps up to a number of written bytes, and calls filled when there are more. The buffer is not embedded,
// because its method ReadFrom would read everything.
type bounded struct {
	kept   bytes.Buffer
	full   bool
	filled func()
}

func (b *bounded) Write(data []byte) (int, error) {
	if room := maxOutput - b.kept.Len(); len(data) > room {
		b.full = true
		b.kept.Write(data[:room])
		if b.filled != nil {
			b.filled()
		}
	} else {
		b.kept.Write(data)
	}
	return len(data), nil
}

// maxLine limits how much of a plugin's standard error is reported, in bytes.
const maxLine = 300

func (b *bounded) line() string {
	text := strings.Fields(foreign.Cut(b.kept.String(), 2*maxLine))
	return foreign.Shorten(strings.Join(text, " "), maxLine)
}

// response is the answer of a plugin.
type response struct {
	APIVersion    string           `json:"apiVersion"`
	Kind          string           `json:"kind"`
	CacheKeyType  string           `json:"cacheKeyType"`
	CacheDuration *metav1.Duration `json:"cacheDuration"`
	Auth          map[string]struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"auth"`
}

func (r *response) logins() []Login {
	var logins []Login
	for match, auth := range r.Auth {
		logins = append(logins, Login{Match: match, Username: auth.Username, Password: auth.Password})
	}
	return logins
}

// read checks an answer. Its errors quote nothing, because the answer contains passwords.
func read(output []byte) (response, error) {
	var said response
	if err := foreign.Object(output, &said); err != nil {
		return said, errors.New("its answer is not JSON, or of another form")
	}
	if said.Kind != kindResponse || said.APIVersion != protocolVersion {
		return said, fmt.Errorf("its answer is not a %s of %s", kindResponse, protocolVersion)
	}
	if !slices.Contains(cacheKeyTypes, said.CacheKeyType) {
		return said, errors.New("cacheKeyType of its answer: want Image, Registry or Global")
	}
	return said, nil
}
