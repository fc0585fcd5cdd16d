package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

// asked notes what is asked for.
type asked struct {
	request  hotupdate.Request
	rollback string
	called   bool
	err      error
}

func (a *asked) Apply(_ context.Context, request hotupdate.Request) (hotupdate.Result, error) {
	a.request, a.called = request, true
	return hotupdate.Result{Changed: true, Revision: hotupdate.Revision{ID: "000003-aaaaaaaaaaaa", Version: request.Version}}, a.err
}

func (a *asked) Rollback(_ context.Context, id string) (hotupdate.Result, error) {
	a.rollback, a.called = id, true
	return hotupdate.Result{Changed: true, Revision: hotupdate.Revision{ID: id, Version: "v1"}}, a.err
}

func (a *asked) Revisions() ([]hotupdate.Revision, error) {
	return []hotupdate.Revision{
		{ID: "3", Version: "v2", Files: []hotupdate.File{{Name: "a", Size: 5}, {Name: "b", Size: 7}}}, {ID: "2", Version: "v1"}, {ID: "1", Version: "v1"},
	}, a.err
}

func call(a *asked, r *http.Request) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	for pattern, handler := range Routes(a) {
		mux.Handle(pattern, handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func form(path string, values url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func inJSON(path, text string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return r
}

// Each field of a form and of JSON is the field of the request that it says.
func TestRequestsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	source := hotupdate.Source{URL: "http://h/a", Name: "x/a", SHA256: sum, Format: hotupdate.Zip, Mode: 0o640, Signature: []byte("sign")}
	values := url.Values{
		"version": {"v1"}, "url": {"http://h/a"}, "name": {"x/a"}, "sha256": {sum}, "format": {"zip"}, "mode": {"0640"}, "signature": {"c2lnbg=="},
	}
	text := `"url":"http://h/a","name":"x/a","sha256":"` + sum + `","format":"zip","mode":"0640","signature":"c2lnbg=="`
	with := func(more ...string) url.Values {
		all := url.Values{}
		for key, value := range values {
			all[key] = value
		}
		for i := 0; i < len(more); i += 2 {
			all.Set(more[i], more[i+1])
		}
		return all
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for key := range values {
		if err := parts.WriteField(key, values.Get(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	multi := httptest.NewRequest(http.MethodPost, "/hot-update", &body)
	multi.Header.Set("Content-Type", parts.FormDataContentType())
	one := []hotupdate.Source{source}
	inline := hotupdate.Source{Name: "b", Data: []byte("B")}
	for name, tt := range map[string]struct {
		r    *http.Request
		want hotupdate.Request
	}{
		"form":                        {form("/hot-update", values), hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"form of several parts":       {multi, hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"query":                       {httptest.NewRequest(http.MethodPost, "/hot-update?"+values.Encode(), http.NoBody), hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"form, these files alone":     {form("/hot-update", with("keep", "false")), hotupdate.Request{Version: "v1", Sources: one}},
		"form, beside others":         {form("/hot-update", with("keep", "true")), hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"form, dry run":               {form("/hot-update", with("dryRun", "true")), hotupdate.Request{Version: "v1", Keep: true, DryRun: true, Sources: one}},
		"form, dry run with no value": {form("/hot-update", with("dryRun", "")), hotupdate.Request{Version: "v1", Keep: true, DryRun: true, Sources: one}},
		"form, no dry run":            {form("/hot-update", with("dryRun", "false")), hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"form, dry run in the URL":    {form("/hot-update?dryRun", values), hotupdate.Request{Version: "v1", Keep: true, DryRun: true, Sources: one}},
		"form, no dry run in the URL": {form("/hot-update?dryRun=false", values), hotupdate.Request{Version: "v1", Keep: true, Sources: one}},
		"JSON":                        {inJSON("/hot-update", `{"version":"r1",`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, Sources: one}},
		"JSON, several files": {inJSON("/hot-update", `{"version":"r1",`+text+`,"files":[{"name":"b","data":"Qg=="}]}`),
			hotupdate.Request{Version: "r1", Keep: true, Sources: []hotupdate.Source{source, inline}}},
		"JSON, these files alone":       {inJSON("/hot-update", `{"version":"r1","keep":false,`+text+`}`), hotupdate.Request{Version: "r1", Sources: one}},
		"JSON, beside others":           {inJSON("/hot-update", `{"version":"r1","keep":true,`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, Sources: one}},
		"JSON, dry run":                 {inJSON("/hot-update", `{"version":"r1","dryRun":true,`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, DryRun: true, Sources: one}},
		"JSON, dry run in the URL":      {inJSON("/hot-update?dryRun", `{"version":"r1",`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, DryRun: true, Sources: one}},
		"JSON, dry run=true in the URL": {inJSON("/hot-update?dryRun=true", `{"version":"r1",`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, DryRun: true, Sources: one}},
		"JSON, no dry run in the URL":   {inJSON("/hot-update?dryRun=false", `{"version":"r1",`+text+`}`), hotupdate.Request{Version: "r1", Keep: true, Sources: one}},
		"JSON, an empty file":           {inJSON("/hot-update", `{"version":"r1","name":"b","data":""}`), hotupdate.Request{Version: "r1", Keep: true, Sources: []hotupdate.Source{{Name: "b", Data: []byte{}}}}},
	} {
		a := &asked{}
		if w := call(a, tt.r); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if diff := cmp.Diff(tt.want, a.request, cmp.FilterValues(func(x, y []byte) bool { return len(x)+len(y) == 0 }, cmp.Ignore())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Scripts of the reference implementation read text, and programs read JSON.
func TestAnswersAreOfTheKindThatIsAskedFor(t *testing.T) {
	t.Parallel()
	values := url.Values{"version": {"v1"}, "url": {"http://h/a"}}
	wants := form("/hot-update", values)
	wants.Header.Set("Accept", "text/html, application/json")
	dry := form("/hot-update?dryRun", values)
	dryJSON := form("/hot-update?dryRun", values)
	dryJSON.Header.Set("Accept", "application/json")
	for name, tt := range map[string]struct {
		r    *http.Request
		json bool
		said string
	}{
		"form":                    {form("/hot-update", values), false, saidDone},
		"form, JSON is accepted":  {wants, true, `"version":"v1"`},
		"JSON":                    {inJSON("/hot-update", `{"version":"v1","url":"http://h/a"}`), true, `"changed":true`},
		"dry run":                 {dry, false, saidDry},
		"what is in force":        {inJSON("/hot-update", `{"version":"v1","url":"http://h/a"}`), true, `"revision":{"id":"000003-aaaaaaaaaaaa","version":"v1"`},
		"a roll back, as text":    {form("/rollback", nil), false, saidDone},
		"a roll back, as JSON":    {inJSON("/rollback", "{}"), true, `"version":"v1","changed":true`},
		"no POST of a roll back":  {httptest.NewRequest(http.MethodGet, "/rollback", http.NoBody), false, saidPost},
		"dry run, for a program":  {dryJSON, true, `"version":"v1"`},
		"what is wrong, as text":  {form("/hot-update", url.Values{"version": {"v1"}}), false, saidURL},
		"what is wrong, as JSON":  {inJSON("/hot-update", `{"version":"v1"}`), true, saidURL},
		"the revisions, always":   {httptest.NewRequest(http.MethodGet, "/revisions", http.NoBody), true, `"size":12`},
		"no POST, text in a form": {httptest.NewRequest(http.MethodPut, "/hot-update", http.NoBody), false, saidPost},
	} {
		w := call(&asked{}, tt.r)
		if isJSON := json.Valid(w.Body.Bytes()); isJSON != tt.json || !strings.Contains(w.Body.String(), tt.said) ||
			strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") != tt.json {
			t.Errorf("%s: %d %s %s", name, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: Allow %q", name, w.Header().Get("Allow"))
		}
	}
}

// Whoever sends it sees what is wrong, and nothing is carried out.
func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	file := func(more string) *http.Request { return inJSON("/hot-update", `{"version":"v1","name":"a",`+more+`}`) }
	values := func(key, value string) *http.Request {
		return form("/hot-update", url.Values{"version": {"v1"}, "url": {"http://h/a"}, key: {value}})
	}
	broken := form("/hot-update", nil)
	broken.Header.Set("Content-Type", "multipart/form-data")
	var parts bytes.Buffer
	writer := multipart.NewWriter(&parts)
	part, err := writer.CreateFormFile("file", "a")
	if err == nil {
		_, err = part.Write([]byte("content"))
	}
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	uploaded := httptest.NewRequest(http.MethodPost, "/hot-update?version=v1&url=http://h/a", &parts)
	uploaded.Header.Set("Content-Type", writer.FormDataContentType())
	for name, tt := range map[string]struct {
		r    *http.Request
		code int
		said string
	}{
		"form, no version":              {values("version", ""), 400, saidVersion},
		"form, another version":         {values("version", "1.2"), 400, saidVersion},
		"form, a version with more":     {values("version", "v1-rc"), 400, saidVersion},
		"form, no URL":                  {values("url", ""), 400, saidURL},
		"form, signature":               {values("signature", "?"), 400, "signature: want base64"},
		"form, mode":                    {values("mode", "rwx"), 400, "mode: want permission bits in octal"},
		"form, mode with more":          {values("mode", "01000"), 400, "mode: want permission bits in octal"},
		"form, keep":                    {values("keep", "yes"), 400, `keep "yes": want true or false`},
		"form, dry run":                 {values("dryRun", "yes"), 400, `dryRun "yes": want true or false`},
		"form, misspelled dry run":      {values("dryrun", "true"), 400, `form: "dryrun": unknown field, want version, url`},
		"form, misspelled in the URL":   {form("/hot-update?dryrun", url.Values{"version": {"v1"}, "url": {"http://h/a"}}), 400, `form: "dryrun": unknown field`},
		"form, two values":              {form("/hot-update?url=http://h/b", url.Values{"version": {"v1"}, "url": {"http://h/a"}}), 400, `form: "url": 2 values, want one`},
		"form with a file":              {uploaded, 400, "attached files are not read; send the content as data, in JSON"},
		"JSON, misspelled in the URL":   {inJSON("/hot-update?dryrun", `{"version":"v1","url":"http://h/a"}`), 400, `form: \"dryrun\": unknown field, want dryRun`},
		"JSON, dry run in the URL":      {inJSON("/hot-update?dryRun=yes", `{"version":"v1","url":"http://h/a"}`), 400, "dryRun"},
		"form that is none":             {broken, 400, "form: "},
		"form that is too large":        {values("name", strings.Repeat("x", 1<<20)), 413, "form: more than 1048576 bytes"},
		"no JSON":                       {inJSON("/hot-update", `{"version":`), 400, "JSON: "},
		"JSON of another form":          {inJSON("/hot-update", `{"version":1}`), 400, "JSON: "},
		"JSON, unknown field":           {file(`"url":"http://h/a","sha":"x"`), 400, `JSON: json: unknown field \"sha\"`},
		"JSON, and more":                {inJSON("/hot-update", `{"version":"v1","url":"http://h/a"} {}`), 400, "JSON: more than one value"},
		"JSON, no version":              {inJSON("/hot-update", `{"url":"http://h/a"}`), 400, saidVersion},
		"JSON, a version of no text":    {inJSON("/hot-update", `{"version":"\ud800","url":"http://h/a"}`), 400, saidVersion},
		"JSON, no file":                 {inJSON("/hot-update", `{"version":"v1"}`), 400, saidURL},
		"JSON, an empty file":           {inJSON("/hot-update", `{"version":"v1","files":[{"name":"a"}]}`), 400, saidURL},
		"JSON, URL and data":            {file(`"url":"http://h/a","data":"QQ=="`), 400, "file 0: want exactly one of url and data"},
		"JSON, URL and data of another": {file(`"url":"http://h/a","files":[{"url":"http://h/b","data":"QQ=="}]`), 400, "file 1: want exactly one of url and data"},
		"JSON, a name of no text":       {inJSON("/hot-update", `{"version":"v1","url":"http://h/a","name":"\ud800"}`), 400, "file 0: name: not UTF-8"},
		"JSON, mode":                    {file(`"url":"http://h/a","mode":"999"`), 400, "mode: want permission bits in octal"},
		"JSON, many files":              {file(`"files":[` + strings.Repeat("{},", 10_000) + `{}]`), 400, "JSON has a list or an object of more than 10000 elements"},
	} {
		a := &asked{}
		if w := call(a, tt.r); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.said) || a.called {
			t.Errorf("%s: %d %.300s, carried out: %t; want %d with %q", name, w.Code, w.Body, a.called, tt.code, tt.said)
		}
	}
}

// A dry run that fails is no success.
func TestDryRunThatFailsIsAFailure(t *testing.T) {
	t.Parallel()
	a := &asked{err: &hotupdate.Failure{Phase: hotupdate.Checking, Err: hotupdate.ErrPrecheck}}
	w := call(a, form("/hot-update?dryRun", url.Values{"version": {"v1"}, "url": {"http://h/a"}}))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "candidate rejected") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What became of the files is part of the answer.
func TestAnswerSaysWhatBecameOfTheFiles(t *testing.T) {
	t.Parallel()
	h := &handlers{}
	answer := func(accept string, res hotupdate.Result, err error) string {
		r := httptest.NewRequest(http.MethodPost, "/hot-update", http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.answer(w, r, "v1", res, err)
		return strings.TrimSpace(w.Body.String())
	}
	skipped := hotupdate.Result{Changed: true, ReloadSkipped: "signal: not possible", Mended: []string{"a"}}
	if got := answer("", skipped, nil); got != saidDone+"; the program was not reloaded: signal: not possible" {
		t.Errorf("%s", got)
	}
	for want, got := range map[string]string{
		`"untold":"signal: not possible","mended":["a"]`: answer("application/json", skipped, nil),
		`"phase":"Verifying","rolledBack":true`:          answer("application/json", hotupdate.Result{}, &hotupdate.Failure{Phase: hotupdate.Verifying, RolledBack: true, Err: errors.New("no")}),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if got := answer("application/json", hotupdate.Result{}, errors.New("no")); strings.Contains(got, "revision") || strings.Contains(got, "phase") || !strings.Contains(got, `"error":"update failed: no"`) {
		t.Errorf("%s", got)
	}
}
