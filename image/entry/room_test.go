package entry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
)

// of is a job of a namespace for an image.
func of(namespace, text string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	j := job(func(j *v1beta1.ImagePullJob) {
		j.Namespace, j.Name, j.Spec.Image = namespace, strings.NewReplacer("/", "-", ":", "-").Replace(text), text
		j.UID = types.UID(namespace + text)
	})
	for _, c := range change {
		c(j)
	}
	return j
}

// fill adds jobs until there is no room, and returns how many have.
func fill(node *v1beta1.NodeImage, most int, next func(i int) *v1beta1.ImagePullJob) int {
	for i := range most {
		j := next(i)
		if !entry.Request(node, j, secretsOf(j), now.Add(time.Duration(i)*time.Second)) {
			return i
		}
	}
	return most
}

func secretsOf(j *v1beta1.ImagePullJob) []v1beta1.ReferenceObject {
	var secrets []v1beta1.ReferenceObject
	for _, name := range j.Spec.PullSecrets {
		secrets = append(secrets, v1beta1.ReferenceObject{Namespace: "kruise-daemon-config", Name: entry.SecretCopy(j.Namespace, name)})
	}
	return secrets
}

// count is how many pulls each namespace has.
func count(node *v1beta1.NodeImage) map[string]int {
	by := map[string]int{}
	for _, want := range image.Wanted(node.Spec) {
		by[want.Namespace]++
	}
	return by
}

// Whatever one namespace fills a NodeImage with, another one gets its share.
func TestNamespaceThatFillsANodeImageMakesRoomForOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fill, ask func(i int) *v1beta1.ImagePullJob
		says      string
	}{
		"images": {
			func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("no.test/a%d:1", i)) },
			func(i int) *v1beta1.ImagePullJob { return of("shop", fmt.Sprintf("app%d:v1", i)) }, "256 images",
		},
		"tags": {
			func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("app:a%d", i)) },
			func(i int) *v1beta1.ImagePullJob { return of("shop", fmt.Sprintf("app:v%d", i)) }, "256 tags of app",
		},
		"jobs": {
			func(i int) *v1beta1.ImagePullJob {
				return of("mallory", "app:v1", func(j *v1beta1.ImagePullJob) { j.UID = types.UID(fmt.Sprint(i)) })
			},
			func(i int) *v1beta1.ImagePullJob {
				return of("shop", "app:v1", func(j *v1beta1.ImagePullJob) { j.UID = types.UID(fmt.Sprint("s", i)) })
			}, "1024 jobs for app:v1",
		},
		"secrets": {
			func(i int) *v1beta1.ImagePullJob {
				return of("mallory", fmt.Sprintf("app:a%d", i), func(j *v1beta1.ImagePullJob) {
					for n := range 64 {
						j.Spec.PullSecrets = append(j.Spec.PullSecrets, fmt.Sprintf("s-%d-%d", i, n))
					}
				})
			},
			func(i int) *v1beta1.ImagePullJob {
				return of("shop", fmt.Sprintf("app:v%d", i), func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{fmt.Sprint("registry-", i)} })
			}, "256 pull secrets for app",
		},
		"bytes": {
			func(i int) *v1beta1.ImagePullJob {
				return of("mallory", fmt.Sprintf("no.test/%s%d:%d", strings.Repeat("a/", 100), i%250, i/250))
			},
			func(i int) *v1beta1.ImagePullJob { return of("shop", fmt.Sprintf("app%d:v1", i)) }, "bytes of entries",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &v1beta1.NodeImage{}
			filled := fill(node, 2000, tt.fill)
			if filled == 2000 {
				t.Fatal("there is no end of it")
			}
			if full := entry.Full(node, tt.fill(filled)); !strings.Contains(full, tt.says) {
				t.Errorf("full of %q, want %q", full, tt.says)
			}
			if full := entry.Full(node, tt.ask(0)); full != "" {
				t.Errorf("no room for another namespace: %s", full)
			}
			if n := fill(node, 20, tt.ask); n != 20 {
				t.Errorf("%d jobs of the other namespace have room", n)
			}
			if by := count(node); by["mallory"] == 0 || name == "images" && by["mallory"] != 236 || name == "tags" && by["mallory"] != 236 {
				t.Errorf("more is removed than is needed: %v", by)
			}
			if name != "images" {
				return
			}
			// It has no more than its share: what was there is not driven out, and does not drive out.
			fill(node, 300, func(i int) *v1beta1.ImagePullJob { return tt.ask(i + 20) })
			fill(node, 300, func(i int) *v1beta1.ImagePullJob { return tt.fill(i + 300) })
			if by := count(node); by["mallory"] != 128 || by["shop"] != 128 {
				t.Errorf("%v", by)
			}
		})
	}
}

// The namespace that uses most makes space, whatever its name, by its newest pulls. Pulls that others than jobs have
// requested are kept.
func TestRoomIsMadeInTheNamespaceThatHasMostAndOfWhatThereIsTooMuchOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fill func(i int) *v1beta1.ImagePullJob
		ask  string
		left int // pulls of mallory at the end
	}{
		"tags": {func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("app:a%d", i)) }, "app:v2", v1beta1.MaxImageTags - 2 - 1 + 10},
		"jobs": {func(i int) *v1beta1.ImagePullJob {
			return of("mallory", "app:v1", func(j *v1beta1.ImagePullJob) { j.UID, j.Name = types.UID(fmt.Sprint(i)), fmt.Sprint("j", i) })
		}, "app:v1", 1 + 10},
	} {
		node := &v1beta1.NodeImage{}
		node.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{Tag: "of-others"}}}}
		fill(node, 1, func(int) *v1beta1.ImagePullJob { return of("aaa", "app:v1") })
		fill(node, 2000, tt.fill)
		later := func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("another%d:1", i)) }
		if n := fill(node, 10, later); n != 10 { // the newest, and in no way of anybody
			t.Fatalf("%s: room for %d other images", name, n)
		}
		if n := fill(node, 1, func(int) *v1beta1.ImagePullJob { return of("shop", tt.ask) }); n != 1 {
			t.Fatalf("%s: no room: %v", name, count(node))
		}
		if by := count(node); by["aaa"] != 1 || by["shop"] != 1 || by[""] != 1 || by["mallory"] != tt.left {
			t.Errorf("%s: %v is left, want %d of mallory", name, by, tt.left)
		}
		for i := range 10 {
			if _, ok := node.Spec.Images[fmt.Sprint("another", i)]; !ok {
				t.Errorf("%s: image another%d has been removed, which made no room", name, i)
			}
		}
	}
}

// To take a namespace out of an image that others have too frees nothing.
func TestRoomIsMadeByImagesThatNobodyElseHas(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{}
	images := fill(node, 2000, func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("a%d:1", i)) })
	if n := fill(node, 10, func(i int) *v1beta1.ImagePullJob { return of("shop", fmt.Sprintf("a%d:1", images-1-i)) }); n != 10 {
		t.Fatalf("%d jobs for images that are there have room", n)
	}
	if n := fill(node, 1, func(int) *v1beta1.ImagePullJob { return of("shop", "app:v1") }); n != 1 {
		t.Fatal("no room for one more")
	}
	if by := count(node); by["mallory"] != images-1 || by["shop"] != 11 {
		t.Errorf("of %d images %v are left", images, by)
	}
}

// etcd takes 1.5 MiB: a status beyond is refused for ever, and no job of anybody ends.
func TestFullNodeImageFitsIntoEtcd(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 253)
	for name, next := range map[string]func(i int) *v1beta1.ImagePullJob{
		"many tags": func(i int) *v1beta1.ImagePullJob {
			return of("mallory", fmt.Sprintf("no.test/%s%d:%s%d", strings.Repeat("a/", 100), i%250, strings.Repeat("t", 100), i/250))
		},
		"many jobs": func(i int) *v1beta1.ImagePullJob {
			return of("mallory", fmt.Sprintf("app%d:v1", i%20), func(j *v1beta1.ImagePullJob) { j.UID = types.UID(fmt.Sprintf("%036d", i)) })
		},
		"many secrets": func(i int) *v1beta1.ImagePullJob {
			return of("mallory", fmt.Sprintf("app%d:v1", i), func(j *v1beta1.ImagePullJob) {
				for n := range 64 {
					j.Spec.PullSecrets = append(j.Spec.PullSecrets, fmt.Sprintf("%d-%d-%s", i, n, secret)[:253])
				}
			})
		},
		"large sandboxes": func(i int) *v1beta1.ImagePullJob {
			return of("mallory", fmt.Sprintf("app%d:v1", i), func(j *v1beta1.ImagePullJob) {
				j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Annotations: map[string]string{"a": strings.Repeat("<", 10000)}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &v1beta1.NodeImage{}
			n := fill(node, 5000, func(i int) *v1beta1.ImagePullJob {
				j := next(i)
				j.Name = strings.Repeat("n", 253)
				return j
			})
			states := map[image.Target]image.State{}
			for _, want := range image.Wanted(node.Spec) {
				state := image.State{Phase: v1beta1.ImagePhaseFailed, Started: now, Completed: now, Message: strings.Repeat("<", 5000), ImageID: "sha256:" + strings.Repeat("0", 64)}
				state.Earlier = map[types.UID]image.Outcome{}
				for uid, asked := range want.Jobs {
					state.Earlier[uid] = image.Outcome{Version: asked, Phase: v1beta1.ImagePhaseFailed, Message: strings.Repeat("<", 5000)}
				}
				states[want.Target] = state
			}
			node.Status = image.Status(node.Spec, states)
			text, err := json.Marshal(node)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d jobs, %d bytes", n, len(text))
			if n == 5000 || len(text) > 1300<<10 {
				t.Errorf("%d jobs, %d bytes", n, len(text))
			}
		})
	}
}

// What a namespace has is what its jobs have asked for, and goes with them.
func TestNothingOfANamespaceGoesWithThePullOfAnother(t *testing.T) {
	t.Parallel()
	shop := of("shop", "app:v1", func(j *v1beta1.ImagePullJob) {
		j.Spec.PullSecrets = []string{"registry"}
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"of": "shop"}}
	})
	mallory := of("mallory", "app:v1", func(j *v1beta1.ImagePullJob) {
		j.Spec.ImagePullPolicy, j.Spec.PullSecrets = v1beta1.PullAlways, []string{"registry", "second"}
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"of": "mallory"}}
		j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(1)), BackoffLimit: new(int32(1000))}
	})
	other := of("mallory", "app:v2")
	var spec v1beta1.NodeImageSpec
	var status v1beta1.NodeImageStatus
	for _, j := range []*v1beta1.ImagePullJob{shop, mallory, other} {
		if !request(&spec, &status, j, secretsOf(j), now) {
			t.Fatal("no room")
		}
	}
	said := func() string {
		text := ""
		for _, w := range image.Wanted(spec) {
			names := ""
			for _, s := range w.Secrets {
				names += s.Name[:3] + " "
			}
			sandbox := ""
			if w.Sandbox != nil {
				sandbox = w.Sandbox.Labels["of"]
			}
			text += fmt.Sprintf("%s %s: secrets %ssandbox %s always %t timeout %s retries %d version %d\n", w.Namespace, w.Tag, names, sandbox, w.Always, w.Timeout, w.Retries, w.Version)
		}
		return text
	}
	both := `mallory v1: secrets reg sec sandbox mallory always true timeout 1s retries 1000 version 0
shop v1: secrets reg sandbox shop always false timeout 10m0s retries 3 version 0
mallory v2: secrets sandbox  always false timeout 10m0s retries 3 version 0
`
	if got := said(); got != both {
		t.Errorf("%s", got)
	}
	if r := spec.Images["app"]; len(r.PullSecrets) != 3 || r.SandboxConfig != nil {
		t.Errorf("for a kruise-daemon: %+v", r)
	}
	if changed, _ := prune(&spec, &status, among(shop, mallory, other), now); changed {
		t.Errorf("changed without a change:\n%s", said())
	}
	if changed, _ := prune(&spec, &status, among(shop, other), now); !changed || strings.Contains(said(), "mallory v1") {
		t.Errorf("changed %t:\n%s", changed, said())
	}
	if r := spec.Images["app"]; len(r.PullSecrets) != 1 || r.PullSecrets[0].Name != entry.SecretCopy("shop", "registry") {
		t.Errorf("secrets of a job that is gone are left: %+v", r.PullSecrets)
	}
}
