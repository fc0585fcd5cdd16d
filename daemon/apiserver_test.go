package daemon

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer is as much of an API server as the daemon uses: lists, watches and merge patches of objects in JSON.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	log     []change
	current map[string]map[string]map[string]any // by collection and key
	changed chan struct{}                        // closed at the next change
	served  map[string][]string
	posted  []string // paths and bodies
}

// change is an event of every watch of its collection.
type change struct {
	kind       string // ADDED or MODIFIED
	collection string // path without namespace, as "/api/v1/pods"
	key        string
	object     map[string]any
}

const (
	podCollection     = "/api/v1/pods"
	requestCollection = "/apis/apps.kruise.io/v1beta1/containerrecreaterequests"
)

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{current: map[string]map[string]map[string]any{}, changed: make(chan struct{}), served: map[string][]string{"apps.kruise.io/v1beta1": {"containerrecreaterequests"}}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// kubeconfig is a file that leads to the server.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve makes the API of a group and version known, as installing a CRD does.
func (s *apiServer) serve(groupVersion string, resources ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[groupVersion] = resources
}

// put adds or replaces an object.
func (s *apiServer) put(t *testing.T, collection string, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(collection, fields)
}

func (s *apiServer) putLocked(collection string, object map[string]any) {
	s.version++
	metadata := object["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	namespace, _ := metadata["namespace"].(string)
	key, kind := namespace+"/"+metadata["name"].(string), "ADDED"
	if s.current[collection] == nil {
		s.current[collection] = map[string]map[string]any{}
	}
	if _, exists := s.current[collection][key]; exists {
		kind = "MODIFIED"
	}
	s.current[collection][key] = object
	s.log = append(s.log, change{kind, collection, key, object})
	close(s.changed)
	s.changed = make(chan struct{})
}

// get decodes an object.
func (s *apiServer) get(t *testing.T, collection, key string, object any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.current[collection][key])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatal(err)
	}
}

// bodies of what was posted to paths that end so.
func (s *apiServer) bodies(suffix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, post := range s.posted {
		if path, body, _ := strings.Cut(post, " "); strings.HasSuffix(path, suffix) {
			all = append(all, body)
		}
	}
	return all
}

func (s *apiServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	out.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		s.mu.Lock()
		s.posted = append(s.posted, r.URL.Path+" "+string(body))
		s.mu.Unlock()
		out.WriteHeader(http.StatusCreated)
		_, _ = out.Write([]byte(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"}}`))
	case r.Method == http.MethodPatch:
		s.patch(out, r.URL.Path, body)
	case r.URL.Query().Has("watch"):
		s.watch(out, r)
	default:
		s.discover(out, strings.TrimPrefix(r.URL.Path, "/apis/"))
	}
}

func (s *apiServer) discover(out http.ResponseWriter, groupVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resources, ok := s.served[groupVersion]
	if !ok {
		http.Error(out, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
		return
	}
	list := metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	_ = json.NewEncoder(out).Encode(list)
}

// patch applies a merge patch, RFC 7386, to the object or its status, unless it is meant for another version.
func (s *apiServer) patch(out http.ResponseWriter, path string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, rest, _ := strings.Cut(path, "/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name, subresource
	collection := before + "/" + parts[1]
	object := s.current[collection][parts[0]+"/"+parts[2]]
	var patch map[string]any
	if object == nil || json.Unmarshal(body, &patch) != nil {
		http.Error(out, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
		return
	}
	wanted, _ := patch["metadata"].(map[string]any)["resourceVersion"].(string)
	if now := object["metadata"].(map[string]any)["resourceVersion"]; wanted != "" && wanted != now {
		http.Error(out, `{"kind":"Status","status":"Failure","reason":"Conflict","code":409}`, http.StatusConflict)
		return
	}
	object = merge(object, patch)
	s.putLocked(collection, object)
	_ = json.NewEncoder(out).Encode(object)
}

func merge(object, patch map[string]any) map[string]any {
	merged := maps.Clone(object)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			inner, _ := merged[key].(map[string]any)
			merged[key] = merge(inner, value)
		default:
			merged[key] = value
		}
	}
	return merged
}

// watch sends what there is, a bookmark, and then every change.
func (s *apiServer) watch(out http.ResponseWriter, r *http.Request) {
	encoder, next, bookmarked := json.NewEncoder(out), 0, false
	for {
		s.mu.Lock()
		pending, changed, version := slices.Clone(s.log[next:]), s.changed, s.version
		next = len(s.log)
		s.mu.Unlock()
		for _, c := range pending {
			if c.collection == r.URL.Path && selected(c.object, r.URL.Query()) {
				_ = encoder.Encode(map[string]any{"type": c.kind, "object": c.object})
			}
		}
		if !bookmarked && r.URL.Query().Has("sendInitialEvents") {
			apiVersion := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')], "/apis/"), "/api/")
			_ = encoder.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": apiVersion, "kind": kindOf(r.URL.Path), "metadata": map[string]any{
					"resourceVersion": strconv.Itoa(version), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				},
			}})
		}
		bookmarked = true
		_ = http.NewResponseController(out).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func kindOf(path string) string {
	if strings.HasSuffix(path, "pods") {
		return "Pod"
	}
	return "ContainerRecreateRequest"
}

// selected applies the selectors that the daemon uses.
func selected(object map[string]any, query url.Values) bool {
	if node, ok := strings.CutPrefix(query.Get("fieldSelector"), "spec.nodeName="); ok {
		spec, _ := object["spec"].(map[string]any)
		return spec["nodeName"] == node
	}
	labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
	for _, term := range strings.FieldsFunc(query.Get("labelSelector"), func(r rune) bool { return r == ',' }) {
		if key, value, _ := strings.Cut(term, "="); labels[key] != value {
			return false
		}
	}
	return true
}
