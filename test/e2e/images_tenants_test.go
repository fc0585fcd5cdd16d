package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/fakeregistry"
)

// mayPull gives a namespace a pull secret for a registry, which refit-manager may read.
func (s *fixture) mayPull(host, user, password string) {
	s.t.Helper()
	s.run("create", "secret", "docker-registry", "registry", "--docker-server="+host, "--docker-username="+user, "--docker-password="+password)
	s.run("create", "rolebinding", "pull", "--clusterrole=refit-pull-secret-reader", "--serviceaccount="+systemNamespace+":refit-manager")
}

// A tenant gets no image of another one, whatever the jobs of both are called and whenever they run.
func TestTenantsPullWithTheirOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	shop := newFixture(t)
	host := shop.registry(map[string]served{"private": {Size: layer, Fault: fakeregistry.Fault{Login: "shop:secret"}}})
	image := host + "/private"
	shop.mayPull(host, "shop", "secret")
	none, wrong := newFixture(t), newFixture(t)
	wrong.mayPull(host, "mallory", "guessed")
	withSecret := func(spec *v1beta1.ImagePullJobSpec) {
		shop.onFirst(0, 60)(spec)
		spec.PullSecrets = []string{"registry"}
	}
	shop.pull("game", image+":v1", func(spec *v1beta1.ImagePullJobSpec) {
		withSecret(spec)
		spec.CompletionPolicy.Type = v1beta1.CompletionNever // its secret is there for as long as the test
	})
	shop.await("the image on the node", func(ctx context.Context) (bool, error) {
		job := &v1beta1.ImagePullJob{}
		err := shop.Get(ctx, shop.key("game"), job)
		return job.Status.Succeeded == 1, err
	})
	for _, tag := range []string{"v1", "internal"} {
		for tenant, change := range map[*fixture]func(*v1beta1.ImagePullJobSpec){none: shop.onFirst(0, 60), wrong: withSecret} {
			tenant.pull("steal-"+tag, image+":"+tag, change)
		}
		for _, tenant := range []*fixture{none, wrong} {
			if job := tenant.waitFor("Failed", "steal-"+tag); !strings.Contains(job.Status.Message, "access denied") {
				t.Errorf("tag %s: %+v", tag, job.Status)
			}
		}
	}
	if shop.onNode(shop.registryNode(), image+":internal") != "" {
		t.Error("the other tenants have pulled a tag with the secret of the first")
	}
	// Nor do they keep the first from it.
	shop.pull("again", image+":v1", func(spec *v1beta1.ImagePullJobSpec) {
		withSecret(spec)
		spec.ImagePullPolicy = v1beta1.PullAlways
	})
	shop.pull("internal", image+":internal", withSecret)
	shop.waitFor("Complete", "again")
	shop.waitFor("Complete", "internal")
}

// A job without patience ends its own pull, and not the pull of another tenant.
func TestPullOfAnotherTenantIsNotEndedByAHastyJob(t *testing.T) {
	t.Parallel()
	shop := newFixture(t)
	host := shop.registry(map[string]served{"game": {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: layer / 12}}})
	hasty := newFixture(t)
	hasty.pull("before", host+"/game:v1", hasty.onFirst(0, 1))
	hasty.waitFor("Failed", "before")
	shop.pull("game", host+"/game:v1", shop.onFirst(0, 300))
	hasty.pull("beside", host+"/game:v1", func(spec *v1beta1.ImagePullJobSpec) {
		hasty.onFirst(0, 1)(spec)
		spec.ImagePullPolicy = v1beta1.PullAlways
	})
	if job := shop.waitFor("Complete", "game"); job.Status.Succeeded != 1 {
		t.Errorf("%+v", job.Status)
	}
}

// A registry that does not answer holds up the pulls of whoever uses it.
func TestPullsThatHangHoldUpNoOtherTenant(t *testing.T) {
	t.Parallel()
	shop := newFixture(t)
	images := map[string]served{"well": {Size: layer}}
	const hang = 10
	for i := range hang {
		images[fmt.Sprint("stalls-", i)] = served{Size: layer, Fault: fakeregistry.Fault{StallAfter: layer / 2}}
	}
	host := shop.registry(images)
	hanging := newFixture(t)
	for i := range hang {
		hanging.pull(fmt.Sprint("hang-", i), fmt.Sprintf("%s/stalls-%d:v1", host, i), hanging.onFirst(100, 3600))
	}
	hanging.await("pulls that hang in all slots", func(ctx context.Context) (bool, error) {
		active := 0
		for i := range hang {
			job := &v1beta1.ImagePullJob{}
			if err := hanging.Get(ctx, hanging.key(fmt.Sprint("hang-", i)), job); err != nil {
				return false, err
			}
			active += int(job.Status.Active)
		}
		return active == hang, nil
	})
	shop.pull("game", host+"/well:v1", shop.onFirst(0, 60))
	if job := shop.waitFor("Complete", "game"); job.Status.Succeeded != 1 {
		t.Errorf("%+v", job.Status)
	}
}
