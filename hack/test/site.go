package main

import (
	"context"
	"os/exec"

	"github.com/refit-project/refit/hack/step"
)

// site builds the documents as a site, if mkdocs is installed. TestSiteListsThePages and TestLinksBetweenPagesResolve check most of the same without it.
func (s *suite) site(ctx context.Context) error {
	if _, err := exec.LookPath("mkdocs"); err != nil {
		s.report.Say("site of the documents: NOT BUILT, mkdocs is not installed")
		return nil
	}
	return s.report.Run(ctx, "site of the documents", step.Command{Dir: s.root, Argv: []string{"make", "site"}})
}
