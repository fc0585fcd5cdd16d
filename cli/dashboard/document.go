package dashboard

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

var pages = template.Must(template.New("page.html.tmpl").ParseFS(assets, "assets/page.html.tmpl"))

// document is a page as HTML. The template escapes all texts.
type document struct {
	// Page is the name of the page, for the navigation.
	Page string
	// Stream is where the changes of the page come from; empty if it does not change.
	Stream string
	View   *View
	// Form asks for the confirmation of an action.
	Form *form
	// Output is what an action has printed.
	Output string
	// Style is in the page if it is a file by itself, with Hash for its policy and the time when it was made.
	Style template.CSS
	Hash  string
	Made  string
	// Embedded are pictures within the page.
	Embedded []embedded
}

type form struct{ Do, Kind, Namespace, Name, Button, Back string }

type embedded struct {
	Src template.URL // a data: URL of a picture that Refit has drawn
	Alt string
}

// write writes a page.
func (s *server) write(w http.ResponseWriter, code int, d document) {
	var out bytes.Buffer
	if err := pages.Execute(&out, d); err != nil {
		http.Error(w, "cannot show the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes())
}

// contentTypes of the files of the pages. The system may have others for these names, and browsers then refuse a script.
var contentTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// asset writes a script or a style sheet.
func asset(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.PathValue("name"))
	content, err := assets.ReadFile("assets/" + name)
	if err != nil || contentTypes[path.Ext(name)] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}
