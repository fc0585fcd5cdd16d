package manager

import (
	"io"
	"time"

	"github.com/refit-project/refit/sidecarset/render"
)

// RenderSidecarSets prints what the SidecarSets in files would inject into the pod in files; "-" stands for in.
func RenderSidecarSets(out io.Writer, in io.Reader, files []string) error {
	var objects render.Objects
	if err := objects.ReadFiles(in, files); err != nil {
		return err
	}
	return render.Print(out, &objects)
}

// CompileSidecarSets prints the MutatingAdmissionPolicies of the SidecarSets in files; "-" stands for in. namespace is the
// manager's; pods of the excluded namespaces are not injected either.
func CompileSidecarSets(out io.Writer, in io.Reader, files []string, namespace string, excluded []string, now time.Time) error {
	if err := checkNamespaces("--excluded-namespaces", excluded); err != nil {
		return err
	}
	var objects render.Objects
	if err := objects.ReadFiles(in, files); err != nil {
		return err
	}
	return render.Compile(out, &objects, namespace, excluded, now)
}
