package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one change of a package's source. All mutants of a package are compiled into one test binary; an environment
// variable says which one is on.
type mutant struct {
	number int
	file   string // relative to the repository
	line   int
	in     string // the function
	kind   string
	text   string // what is changed, on one line
}

// key names a mutant without its line, so that it survives changes elsewhere in the file.
func (m mutant) key() string { return fmt.Sprintf("%s %s: %s: %s", m.file, m.in, m.kind, m.text) }

// Kinds of mutants.
const (
	kindNegate   = "negate"
	kindBoundary = "boundary"
	kindLogic    = "and/or"
	kindLeft     = "left only"  // of a && b or a || b
	kindRight    = "right only" // of the same
	kindNever    = "never"      // the body of an if or a case
	kindDelete   = "delete"
	kindNoError  = "no error" // returned
)

// edit replaces source[from:to]. Where edits meet, they come in the order of their ranks: what ends before what begins,
// and the parts of a longer node around the parts of a shorter one.
type edit struct {
	from, to int
	rank     [3]int
	text     string
}

// mutator collects the mutants of one file.
type mutator struct {
	path    string
	source  []byte
	files   *token.FileSet
	next    int // number of the next mutant
	mutants []mutant
	edits   []edit
	in      string
}

// mutate returns the mutants of a file, numbered from first, and the source in which they are switched.
func mutate(path string, source []byte, first int) ([]mutant, []byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	m := &mutator{path: path, source: source, files: files, next: first}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			m.in = function.Name.Name
			m.function(function.Type, function.Body)
		}
	}
	return m.mutants, m.apply(), nil
}

func (m *mutator) function(signature *ast.FuncType, body *ast.BlockStmt) {
	results := signature.Results
	decides := results.NumFields() == 1 && last(results) == "bool"
	fails := last(results) == "error"
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			m.function(node.Type, node.Body)
			return false
		case *ast.GenDecl:
			return node.Tok == token.VAR
		case *ast.BlockStmt:
			m.statements(node.List)
		case *ast.CaseClause:
			m.statements(node.Body)
		case *ast.CommClause:
			m.statements(node.Body)
		case *ast.SwitchStmt:
			m.switches(node)
		case *ast.IfStmt:
			m.never(node.Cond)
			m.condition(node.Cond)
		case *ast.ForStmt:
			m.condition(node.Cond)
		case *ast.ReturnStmt:
			if decides && len(node.Results) == 1 {
				m.condition(node.Results[0])
			}
			if fails && len(node.Results) == results.NumFields() {
				m.failure(node.Results[len(node.Results)-1])
			}
		case *ast.BinaryExpr:
			m.binary(node)
		}
		return true
	})
}

// last returns the name of the type of the last result, "" for one without a name and where there is no result.
func last(results *ast.FieldList) string {
	if results.NumFields() == 0 {
		return ""
	}
	name, ok := results.List[len(results.List)-1].Type.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}

// failure loses an error that is returned.
func (m *mutator) failure(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && name.Name == "nil" {
		return
	}
	m.wrap(e, fmt.Sprintf("mutationError(%d, ", m.add(kindNoError, e)), ")")
}

// never leaves out what is done on a condition, such as an early return for a rare state.
func (m *mutator) never(e ast.Expr) {
	m.wrap(e, fmt.Sprintf("mutationNever(%d, ", m.add(kindNever, e)), ")")
}

// switches negates the cases of a switch over conditions.
func (m *mutator) switches(node *ast.SwitchStmt) {
	if node.Tag != nil {
		return
	}
	for _, clause := range node.Body.List {
		for _, condition := range clause.(*ast.CaseClause).List {
			m.never(condition)
			m.condition(condition)
		}
	}
}

// condition negates an expression that is true or false. Those with an operator of their own are found by binary.
func (m *mutator) condition(expression ast.Expr) {
	switch e := expression.(type) {
	case nil, *ast.BinaryExpr:
	case *ast.ParenExpr:
		m.condition(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			m.condition(e.X)
		} else {
			m.negate(e)
		}
	default:
		m.negate(e)
	}
}

func (m *mutator) negate(e ast.Expr) {
	n := m.add(kindNegate, e)
	m.wrap(e, fmt.Sprintf("mutationNegate(%d, ", n), ")")
}

func (m *mutator) binary(e *ast.BinaryExpr) {
	operator := m.offset(e.OpPos)
	replace := func(text string) {
		m.edits = append(m.edits, edit{operator, operator + len(e.Op.String()), [3]int{1}, text})
	}
	switch e.Op {
	case token.LAND, token.LOR:
		m.condition(e.X)
		m.condition(e.Y)
		name := map[token.Token]string{token.LAND: "And", token.LOR: "Or"}[e.Op]
		m.wrap(e, fmt.Sprintf("mutation%s(%d, ", name, m.add(kindLogic, e)), ") })")
		m.add(kindLeft, e)
		m.add(kindRight, e)
		replace(", func() bool { return (")
	case token.EQL, token.NEQ:
		m.negate(e)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		m.negate(e)
		name := map[token.Token]string{token.LSS: "Less", token.GEQ: "Less", token.LEQ: "LessOrEqual", token.GTR: "LessOrEqual"}[e.Op]
		not := ""
		if e.Op == token.GTR || e.Op == token.GEQ {
			not = "!"
		}
		m.wrap(e, fmt.Sprintf("%smutation%s(%d, ", not, name, m.add(kindBoundary, e)), ")")
		replace(",")
	}
}

// statements leaves out one statement at a time. Log lines and definitions stay.
func (m *mutator) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s.Lhs) {
				continue
			}
		case *ast.ExprStmt:
			if kept(m.text(s)) {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE && s.Tok != token.BREAK {
				continue
			}
		default:
			continue
		}
		m.wrap(statement, fmt.Sprintf("if mutationKeep(%d) { ", m.add(kindDelete, statement)), " }")
	}
}

// kept are log lines, which no test has to read, and panics, without which a function may not compile.
func kept(statement string) bool {
	called, _, _ := strings.Cut(strings.ToLower(statement), "(")
	return called == "panic" || strings.Contains(called, "logger.") || strings.Contains(called, "log.")
}

func blank(left []ast.Expr) bool {
	return !slices.ContainsFunc(left, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}

func (m *mutator) add(kind string, node ast.Node) int {
	n := m.next
	m.next++
	m.mutants = append(m.mutants, mutant{
		number: n, file: m.path, line: m.files.Position(node.Pos()).Line, in: m.in, kind: kind, text: m.text(node),
	})
	return n
}

// text is a node's source on one line.
func (m *mutator) text(node ast.Node) string {
	return strings.Join(strings.Fields(string(m.source[m.offset(node.Pos()):m.offset(node.End())])), " ")
}

// wrap puts text around a node. Around one node, what is wrapped later comes inside.
func (m *mutator) wrap(node ast.Node, before, after string) {
	from, to := m.offset(node.Pos()), m.offset(node.End())
	length, sequence := to-from, len(m.edits)
	m.edits = append(m.edits, edit{from, from, [3]int{1, -length, sequence}, before}, edit{to, to, [3]int{0, length, -sequence}, after})
}

func (m *mutator) offset(pos token.Pos) int { return m.files.Position(pos).Offset }

func (m *mutator) apply() []byte {
	slices.SortStableFunc(m.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), slices.Compare(a.rank[:], b.rank[:]))
	})
	var out []byte
	at := 0
	for _, e := range m.edits {
		out = append(append(out, m.source[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, m.source[at:]...)
}
