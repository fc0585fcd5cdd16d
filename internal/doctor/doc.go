// Package doctor checks an installation of Refit: whether its parts exist, whether they respond, and what disturbs them. It
// changes nothing.
package doctor
