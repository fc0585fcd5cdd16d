package docs_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// rules are the verbs of a role by resource, as "pods/status" or "deployments.apps".
type rules map[string][]string

// accountsRoles are the roles that are bound to an account of Refit, by what the comments in security.md call them.
func accountsRoles(t *testing.T) map[string]rules {
	t.Helper()
	roles, bound := map[string]rules{}, map[string]bool{}
	files, err := filepath.Glob("../deploy/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			var object struct {
				rbacv1.Role `json:",inline"`
				RoleRef     rbacv1.RoleRef `json:"roleRef"`
			}
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
			switch object.Kind {
			case "Role", "ClusterRole":
				roles[object.Kind+" "+name] = expand(object.Rules)
			case "RoleBinding":
				bound["Role "+strings.TrimPrefix(object.Namespace+"/"+object.RoleRef.Name, "/")] = true
			case "ClusterRoleBinding":
				bound["ClusterRole "+object.RoleRef.Name] = true
			}
		}
	}
	maps.DeleteFunc(roles, func(name string, _ rules) bool { return !bound[name] })
	return roles
}

func expand(all []rbacv1.PolicyRule) rules {
	expanded := rules{}
	for _, rule := range all {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				key := strings.TrimSuffix(strings.TrimSuffix(name+"."+group, ".")+"/"+sub, "/")
				expanded[key] = append(expanded[key], rule.Verbs...)
			}
		}
	}
	return expanded.sorted()
}

func (r rules) sorted() rules {
	for _, verbs := range r {
		slices.Sort(verbs)
	}
	return r
}

// documentedRoles reads the tables of security.md that follow a comment with the name of their role.
func documentedRoles(t *testing.T) map[string]rules {
	t.Helper()
	content, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`<!-- rbac: ([^>]+) -->\n((?:\|.*\n)+)`)
	resource := regexp.MustCompile("`([a-z0-9./]+)`")
	documented := map[string]rules{}
	for _, match := range table.FindAllStringSubmatch(string(content), -1) {
		of := rules{}
		for _, row := range strings.Split(match[2], "\n")[2:] {
			cells := strings.Split(row, "|")
			if len(cells) < 5 {
				continue
			}
			if strings.TrimSpace(cells[3]) == "" {
				t.Errorf("%s: %s has no reason", match[1], cells[1])
			}
			for _, name := range resource.FindAllStringSubmatch(cells[1], -1) {
				of[name[1]] = append(of[name[1]], strings.Split(strings.TrimSpace(cells[2]), ", ")...)
			}
		}
		documented[match[1]] = of.sorted()
	}
	return documented
}

// security.md lists what each account may do, and why. A new rule needs a row there.
func TestEveryRuleOfOurAccountsHasAReason(t *testing.T) {
	t.Parallel()
	roles := accountsRoles(t)
	if len(roles) < 8 {
		t.Errorf("only %d roles", len(roles))
	}
	if diff := cmp.Diff(roles, documentedRoles(t)); diff != "" {
		t.Errorf("tables of docs/security.md (-deploy +docs/security.md):\n%s", diff)
	}
}
