package manager

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/refit-project/refit/manager/sidecarset/render"
)

// RenderSidecarSets prints what the SidecarSets in files would inject into the pod in files; "-" is in.
func RenderSidecarSets(out io.Writer, in io.Reader, files []string) error {
	objects, err := readObjects(in, files)
	if err != nil {
		return err
	}
	return render.Print(out, objects)
}

// CompileSidecarSets prints the MutatingAdmissionPolicies of the SidecarSets in files; "-" is in. Namespace is the manager's.
func CompileSidecarSets(out io.Writer, in io.Reader, files []string, namespace string, now time.Time) error {
	objects, err := readObjects(in, files)
	if err != nil {
		return err
	}
	return render.Compile(out, objects, namespace, now)
}

func readObjects(in io.Reader, files []string) (*render.Objects, error) {
	objects := &render.Objects{}
	for _, file := range files {
		content, err := readFile(in, file)
		if err != nil {
			return nil, err
		}
		if err := objects.Read(content); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return objects, nil
}

func readFile(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return content, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return content, nil
}
