package credentialprovider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/image/credentialprovider"
	"github.com/refit-project/refit/test/kit/poll"
)

const config = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: plugin
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.registry.test", "other.test:5000/team"]
  defaultCacheDuration: %s
  args: %s
  env: [{name: REGION, value: eu}]
`

// open creates a plugin from a shell script, which records its calls in the file $calls.
func open(t *testing.T, cache, script string) (*credentialprovider.Plugins, func() int) {
	t.Helper()
	folder := t.TempDir()
	calls := filepath.Join(folder, "calls")
	// A script that is written and run at once is "text file busy" when another test forks in between.
	if err := os.Symlink("/bin/sh", filepath.Join(folder, "plugin")); err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal([]string{"-c", "echo call >>" + calls + "\n" + script, "plugin", "get"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "config.yaml"), fmt.Sprintf(config, cache, args))
	plugins, err := credentialprovider.New(filepath.Join(folder, "config.yaml"), folder)
	if err != nil {
		t.Fatal(err)
	}
	return plugins, func() int {
		text, _ := os.ReadFile(calls)
		return strings.Count(string(text), "call")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const answer = `cat <<END
{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"%s",%s
 "auth":{"a.registry.test":{"username":"user-$REGION-$1","password":"secret"}}}
END`

func TestPluginGetsTheImageAndItsAnswerIsRead(t *testing.T) {
	t.Parallel()
	plugins, _ := open(t, "0s", `grep -q '"image":"a.registry.test/team/app"' || exit 3; `+fmt.Sprintf(answer, "Image", ""))
	got, err := plugins.Logins(t.Context(), "a.registry.test/team/app")
	want := []credentialprovider.Login{{Match: "a.registry.test", Username: "user-eu-get", Password: "secret"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := plugins.Logins(t.Context(), "registry.test/app"); err != nil || len(got) > 0 {
		t.Errorf("for an image that no plugin is for: %+v, %v", got, err)
	}
}

func TestAnswersAreKeptAsThePluginSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cache, keyType, says string
		calls                int
	}{
		"by image":               {"1h", "Image", "", 2},
		"by registry":            {"1h", "Registry", "", 1},
		"for all":                {"0s", "Global", `"cacheDuration":"1h",`, 1},
		"not at all":             {"1h", "Global", `"cacheDuration":"0s",`, 3},
		"not at all, by default": {"0s", "Registry", "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugins, calls := open(t, tt.cache, fmt.Sprintf(answer, tt.keyType, tt.says))
			for _, image := range []string{"a.registry.test/app", "a.registry.test/app", "a.registry.test/log"} {
				if got, err := plugins.Logins(t.Context(), image); err != nil || len(got) != 1 {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			if got := calls(); got != tt.calls {
				t.Errorf("called %d times, want %d", got, tt.calls)
			}
		})
	}
}

// So many images that what is kept of a plugin would fill the memory: for those beyond the limit the plugin is asked each time.
// The first call waits for the second one.
func TestACallForOneImageDelaysNoOther(t *testing.T) {
	t.Parallel()
	began, released := filepath.Join(t.TempDir(), "began"), filepath.Join(t.TempDir(), "released")
	wait := fmt.Sprintf(`if grep -q slow; then touch %s; while ! [ -e %s ]; do sleep 0.01; done; else touch %[2]s; fi; `, began, released)
	plugins, _ := open(t, "0s", wait+fmt.Sprintf(answer, "Image", ""))
	slow := make(chan error, 1)
	go func() {
		_, err := plugins.Logins(t.Context(), "a.registry.test/slow")
		slow <- err
	}()
	poll.Until(t, "the first call", func() bool { _, err := os.Stat(began); return err == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := plugins.Logins(ctx, "a.registry.test/fast"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(released, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestAnswersThatAreKeptAreLimited(t *testing.T) {
	t.Parallel()
	const limit = 256
	plugins, calls := open(t, "1h", `echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image"}'`)
	ask := func(image int) {
		if _, err := plugins.Logins(t.Context(), fmt.Sprintf("a.registry.test/app-%d", image)); err != nil {
			t.Fatal(err)
		}
	}
	for image := range limit + 1 {
		ask(image)
	}
	if ask(0); calls() != limit+1 {
		t.Errorf("%d calls: the answer for the first image is not kept", calls())
	}
	if ask(limit); calls() != limit+2 {
		t.Errorf("%d calls: more than %d answers are kept", calls(), limit)
	}
}

func TestPluginThatMisbehavesIsReportedAndBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, says string }{
		"fails":              {"echo no   network >&2; exit 1", "no network"},
		"writes no JSON":     {"echo secret", "not JSON"},
		"another kind":       {`echo '{"kind":"Secret","apiVersion":"v1"}'`, "not a CredentialProviderResponse"},
		"another key type":   {`echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"secret"}'`, "want Image, Registry or Global"},
		"writes without end": {"yes secret", "wrote more than"},
		"hangs":              {"sleep 5 & wait", "has not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugins, _ := open(t, "1h", tt.script)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if name == "hangs" {
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			begun := time.Now()
			got, err := plugins.Logins(ctx, "a.registry.test/app")
			if err == nil || len(got) > 0 || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "provider plugin") {
				t.Errorf("%+v, %v", got, err)
			}
			if time.Since(begun) > 20*time.Second {
				t.Errorf("after %s", time.Since(begun))
			}
		})
	}
}

func TestConfigurationIsCheckedWithFieldAndRule(t *testing.T) {
	t.Parallel()
	well := fmt.Sprintf(config, "1h", "[get]")
	for want, text := range map[string]string{
		"kind":                                         strings.Replace(well, "CredentialProviderConfig", "Config", 1),
		"apiVersion":                                   strings.Replace(well, "kubelet.config.k8s.io/v1", "v1", 1),
		"providers[0].name":                            strings.Replace(well, "name: plugin", "name: ../sh", 1),
		"providers[0].apiVersion":                      strings.Replace(well, "credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v2", 1),
		"providers[0].matchImages":                     strings.Replace(well, "matchImages", "images", 1),
		"providers[0].defaultCacheDuration":            strings.Replace(well, "defaultCacheDuration: 1h", "", 1),
		"providers[0].tokenAttributes":                 strings.Replace(well, "args: [get]", "tokenAttributes: {serviceAccountTokenAudience: x}", 1),
		"providers[1].name \"plugin\": is given twice": well + strings.SplitAfterN(well, "providers:\n", 2)[1],
		"is not a program":                             strings.Replace(well, "name: plugin", "name: config.yaml", 1),
		"error":                                        "{",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.Symlink("/bin/sh", filepath.Join(folder, "plugin")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "config.yaml"), text)
			if _, err := credentialprovider.New(filepath.Join(folder, "config.yaml"), folder); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := credentialprovider.New("/no/such/file", "/"); !errors.Is(err, credentialprovider.ErrNoConfig) {
		t.Error(err)
	}
}

// The cases are of kubelet's documentation of matchImages.
func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, image string
		want           bool
	}{
		{"*.registry.io", "a.registry.io/app", true},
		{"*.registry.io", "registry.io/app", false},
		{"*.*.registry.io", "a.b.registry.io/app", true},
		{"k8s.*.io", "k8s.gcr.io/app", true},
		{"app*.k8s.io", "app1.k8s.io/x", true},
		{"registry.io:8080/path", "registry.io:8080/path/app", true},
		{"registry.io:8080/path", "registry.io/path/app", false},
		{"registry.io", "registry.io:8080/app", false},
		{"https://registry.io/team", "registry.io/team/app", true},
		{"registry.io/team", "registry.io/other", false},
		{"[", "a/app", false},
	} {
		if got := credentialprovider.Matches(tt.pattern, tt.image); got != tt.want {
			t.Errorf("%s, %s: %v", tt.pattern, tt.image, got)
		}
	}
}
