package render

import (
	"fmt"
	"io"
	"os"
)

// ReadFiles adds the objects in files; "-" means in.
func (o *Objects) ReadFiles(in io.Reader, files []string) error {
	for _, file := range files {
		content, err := readFile(in, file)
		if err != nil {
			return err
		}
		if err := o.Read(content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
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
