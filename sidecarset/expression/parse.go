package expression

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Limits of an expression: its length in bytes, and its nesting depth.
const (
	maxLength = 1024
	maxDepth  = 64
)

// token matches a number with an exponent, a percent sign or a suffix; a word; or an operator.
var token = regexp.MustCompile(`^(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?([A-Za-z]+|%)?|([A-Za-z_]+)|([-+*/(),]))`)

// factors holds the factors of the suffixes of quantities.
var factors = map[string]*big.Rat{
	"m": big.NewRat(1, 1000), "k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1),
	"P": big.NewRat(1e15, 1), "Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1),
	"Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50, 1),
}

type parser struct {
	text    string // the rest of the input
	whole   string
	unit    Unit
	depth   int
	current []string // groups of the next token; nil at the end
	used    bool     // the variable has been used
}

// Parse parses an expression.
func Parse(text string, unit Unit) (*Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes, and may have %d", len(text), maxLength)
	}
	p := &parser{text: text, whole: text, unit: unit}
	if err := p.next(); err != nil {
		return nil, err
	}
	root, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.current != nil {
		return nil, p.unexpected()
	}
	return &Expression{root: root, unit: unit, variable: p.used}, nil
}

func (p *parser) next() error {
	p.text = strings.TrimLeft(p.text, " \t\n")
	p.current = nil
	if p.text == "" {
		return nil
	}
	p.current = token.FindStringSubmatch(p.text)
	if p.current == nil {
		return p.unexpected()
	}
	p.text = p.text[len(p.current[0]):]
	return nil
}

func (p *parser) unexpected() error {
	at := len(p.whole) - len(p.text)
	if p.current != nil {
		return fmt.Errorf("unexpected %q before position %d", p.current[0], at)
	}
	if p.text == "" {
		return fmt.Errorf("unexpected end of the expression")
	}
	return fmt.Errorf("unexpected character at position %d", at)
}

func (p *parser) is(signs ...string) bool {
	if p.current == nil || p.current[5] == "" {
		return false
	}
	for _, sign := range signs {
		if p.current[5] == sign {
			return true
		}
	}
	return false
}

func (p *parser) expect(sign string) error {
	if !p.is(sign) {
		return p.unexpected()
	}
	return p.next()
}

func (p *parser) sum() (node, error) { return p.left(p.product, "+", "-") }

func (p *parser) product() (node, error) { return p.left(p.unary, "*", "/") }

// left parses operands separated by left-associative operators.
func (p *parser) left(operand func() (node, error), operators ...string) (node, error) {
	result, err := operand()
	if err != nil {
		return nil, err
	}
	for p.is(operators...) {
		operator, a := p.current[5], result
		if err := p.next(); err != nil {
			return nil, err
		}
		b, err := operand()
		if err != nil {
			return nil, err
		}
		result = binary(operator, a, b)
	}
	return result, nil
}

func binary(operator string, a, b node) node {
	return func(variable *big.Rat) (value, error) {
		left, err := a(variable)
		if err != nil {
			return value{}, err
		}
		right, err := b(variable)
		if err != nil {
			return value{}, err
		}
		return operate(operator, left, right)
	}
}

func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("the expression is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.current == nil:
		return nil, p.unexpected()
	case p.is("-"):
		if err := p.next(); err != nil {
			return nil, err
		}
		operand, err := p.unary()
		if err != nil {
			return nil, err
		}
		return binary("*", constant(value{amount: big.NewRat(-1, 1)}), operand), nil
	case p.is("("):
		if err := p.next(); err != nil {
			return nil, err
		}
		inner, err := p.sum()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	case p.current[1] != "":
		return p.number()
	case p.current[4] != "":
		return p.word()
	}
	return nil, p.unexpected()
}

func constant(v value) node { return func(*big.Rat) (value, error) { return v, nil } }

func (p *parser) number() (node, error) {
	text, suffix := p.current[1]+p.current[2], p.current[3]
	amount, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, p.unexpected()
	}
	v := value{amount: amount}
	switch factor, known := factors[suffix]; {
	case suffix == "%":
		v.amount.Mul(amount, big.NewRat(1, 100))
	case known:
		v.amount.Mul(amount, factor)
		v.quantity = true
	case suffix != "":
		return nil, fmt.Errorf("unknown suffix %s", suffix)
	}
	return constant(v), p.next()
}

// word parses the variable or a function, ignoring case.
func (p *parser) word() (node, error) {
	name := strings.ToLower(p.current[4])
	if err := p.next(); err != nil {
		return nil, err
	}
	if name == p.unit.Variable() {
		p.used = true
		return func(variable *big.Rat) (value, error) { return value{amount: variable, quantity: true}, nil }, nil
	}
	if name != "max" && name != "min" {
		return nil, fmt.Errorf("unknown name %s: %s, max(a, b) and min(a, b) can be used here", name, p.unit.Variable())
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	a, err := p.sum()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	b, err := p.sum()
	if err != nil {
		return nil, err
	}
	return binary(name, a, b), p.expect(")")
}
