// Package markdown finds the code blocks of the documents, with what a comment above each says about its test, and the
// commands in them.
package markdown

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Kinds of marks: comments such as <!-- test: cluster --> in the line above a block. CONTRIBUTING.md describes them.
const (
	Cluster = "cluster" // the block is run on the test cluster, with the others of its page, in their order
	File    = "file"    // the block is the file of that name for the commands of its page
	By      = "by"      // the test of that name does the same
	Skip    = "skip"    // the block is not run, for that reason
)

// Pages returns the Markdown files below a checkout's root, without hidden folders, build results and test data.
func Pages(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && name != ".github" && (strings.HasPrefix(name, ".") || name == "dist" || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".md.tmpl") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find pages: %w", err)
	}
	return found, nil
}

// Block is a fenced code block of a page.
type Block struct {
	Page     string // path of the page
	Line     int    // line of its first fence, from 1
	Language string // what follows the fence, such as sh or yaml; may be empty
	Text     string // without the indentation of the fence
	Mark     string // kind of its mark; empty without one
	Value    string // what follows the kind in the mark
}

// String is where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	mark  = regexp.MustCompile(`^ *<!-- test: ([a-z]+)(?: (.+))? -->$`)
)

// Read returns the blocks of a page in their order. A mark that belongs to no block, a mark of an unknown kind and a
// block without an end are errors.
func Read(page string) ([]Block, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("read blocks: %w", err)
	}
	return parse(page, string(content))
}

func parse(page, content string) ([]Block, error) {
	var (
		blocks []Block
		marked []string
		open   *Block
		indent string
		text   strings.Builder
	)
	for i, line := range strings.Split(content, "\n") {
		begin := fence.FindStringSubmatch(line)
		switch {
		case open != nil && strings.TrimPrefix(line, indent) == "```":
			open.Text = text.String()
			blocks, open = append(blocks, *open), nil
		case open != nil:
			text.WriteString(strings.TrimPrefix(line, indent) + "\n")
		case begin != nil:
			open = &Block{Page: page, Line: i + 1, Language: begin[2]}
			indent = begin[1]
			text.Reset()
			if marked != nil {
				open.Mark, open.Value, marked = marked[1], marked[2], nil
			}
		case marked != nil:
			return nil, fmt.Errorf("%s:%d: a mark has to be in the line above a block", page, i)
		default:
			if marked = mark.FindStringSubmatch(line); marked == nil {
				continue
			}
			if err := checkMark(marked[1], marked[2]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
		}
	}
	if open != nil || marked != nil {
		return nil, fmt.Errorf("%s: the last block or mark has no end", page)
	}
	return blocks, nil
}

func checkMark(kind, value string) error {
	switch kind {
	case Cluster:
		if value != "" {
			return fmt.Errorf("mark %q has no value", kind)
		}
	case File, By, Skip:
		if value == "" {
			return fmt.Errorf("mark %q needs a value", kind)
		}
	default:
		return fmt.Errorf("unknown mark %q", kind)
	}
	return nil
}

// Commands returns the simple commands of a shell script with their words, quotes removed. A word with an expansion is
// returned as it is written. The error says what the shell would not parse.
func Commands(script string) ([][]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("parse commands: %w", err)
	}
	var commands [][]string
	var faults []error
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, word := range call.Args {
			text, err := unquoted(word)
			faults = append(faults, err)
			words = append(words, text)
		}
		commands = append(commands, words)
		return true
	})
	return commands, errors.Join(faults...)
}

func unquoted(word *syntax.Word) (string, error) {
	var text strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner, err := unquoted(&syntax.Word{Parts: p.Parts})
			if err != nil {
				return "", err
			}
			text.WriteString(inner)
		default:
			if err := syntax.NewPrinter().Print(&text, p); err != nil {
				return "", fmt.Errorf("parse commands: %w", err)
			}
		}
	}
	return text.String(), nil
}
