package cli

// Colour paints words on a terminal, and leaves them as they are elsewhere.
type Colour bool

// Red is for what has failed.
func (c Colour) Red(text string) string { return c.paint("31", text) }

// Green is for what is done.
func (c Colour) Green(text string) string { return c.paint("32", text) }

// Yellow is for what is under way.
func (c Colour) Yellow(text string) string { return c.paint("33", text) }

func (c Colour) paint(code, text string) string {
	if !c {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
