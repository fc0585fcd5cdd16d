package credentialprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// timeout of a call; kubelet's is a minute.
	timeout = 30 * time.Second
	// afterKill is how long a plugin's output may stay open after it has been killed, as by a child of its.
	afterKill = time.Second
	// maxOutput bounds what a plugin may write, in bytes.
	maxOutput = 1 << 20
	// maxEntries bounds what is kept of one plugin.
	maxEntries = 256
)

// Login is one user name and password of a plugin's answer.
type Login struct {
	// Match is the pattern of images that it is for, as registry.example.com/team.
	Match              string
	Username, Password string
}

// Plugins are those of a configuration file. Make it with New.
type Plugins struct{ list []*plugin }

// Logins asks every plugin that is configured for the image, which is written as in a container with its registry. What
// some have answered is returned beside the errors of others. Callers for the same plugin wait for one another.
func (p *Plugins) Logins(ctx context.Context, image string) ([]Login, error) {
	var all []Login
	var faults []error
	for _, plugin := range p.list {
		if !plugin.matches(image) {
			continue
		}
		logins, err := plugin.logins(ctx, image)
		if err != nil {
			faults = append(faults, fmt.Errorf("credential provider %s: %w", plugin.Name, err))
		}
		all = append(all, logins...)
	}
	return all, errors.Join(faults...)
}

type plugin struct {
	provider
	program string

	mu   sync.Mutex
	kept map[string]answer // by what the answer is for
}

// answer is what a plugin has said, until it has to be asked again.
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

// cacheKeys are what an answer for the image may be kept under, as the plugin says: "Image", "Registry" or "Global".
func cacheKeys(image string) map[string]string {
	registry, _, _ := strings.Cut(image, "/")
	return map[string]string{"Image": "image " + image, "Registry": "registry " + registry, "Global": "global"}
}

func (p *plugin) logins(ctx context.Context, image string) ([]Login, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for key, kept := range p.kept {
		if !now.Before(kept.until) {
			delete(p.kept, key)
		}
	}
	keys := cacheKeys(image)
	for _, key := range keys {
		if kept, ok := p.kept[key]; ok {
			return kept.logins, nil
		}
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
	if keep = min(keep, maxCache); keep > 0 && len(p.kept) < maxEntries {
		p.kept[keys[said.CacheKeyType]] = answer{logins: said.logins(), until: now.Add(keep)}
	}
	return said.logins(), nil
}

// call runs the plugin. What it writes to its standard error is told if it fails.
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

// bounded keeps so much of what is written, and calls filled when there is more. The buffer is no embedded one, whose
// ReadFrom would take everything.
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

// maxLine bounds what is told of a plugin's standard error, in bytes.
const maxLine = 300

func (b *bounded) line() string {
	text := strings.Join(strings.Fields(string(b.kept.Bytes()[:min(b.kept.Len(), 2*maxLine)])), " ")
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// response is what a plugin answers.
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

// read checks an answer. Its errors quote nothing: there are passwords in it.
func read(output []byte) (response, error) {
	var said response
	if err := json.Unmarshal(output, &said); err != nil {
		return said, errors.New("its answer is not JSON, or of another form")
	}
	if said.Kind != kindResponse || said.APIVersion != protocolVersion {
		return said, fmt.Errorf("its answer is not a %s of %s", kindResponse, protocolVersion)
	}
	if _, ok := cacheKeys("")[said.CacheKeyType]; !ok {
		return said, errors.New("cacheKeyType of its answer: want Image, Registry or Global")
	}
	return said, nil
}
