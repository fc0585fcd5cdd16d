package manager

import (
	"fmt"
	"io"
	"os"

	"github.com/refit-project/refit/manager/sidecarset/render"
)

// RenderSidecarSets prints what the SidecarSets in files would inject into the pod in files; "-" is in.
func RenderSidecarSets(out io.Writer, in io.Reader, files []string) error {
	var objects render.Objects
	for _, file := range files {
		content, err := readFile(in, file)
		if err != nil {
			return err
		}
		if err := objects.Read(content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return render.Print(out, &objects)
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
