// Package expression evaluates the expressions of resourcesPolicy, for example max(cpu*50%, 50m). Its arithmetic is exact.
package expression

import (
	"errors"
	"fmt"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/foreign"
)

// Errors of valid expressions that have no value.
var (
	ErrDivisionByZero = errors.New("division by zero")
	ErrNegative       = errors.New("the result is negative")
	ErrTwoQuantities  = errors.New("quantities can be multiplied by numbers and divided by numbers only")
	ErrTooLarge       = errors.New("the number is too large")
)

// Unit says how results are rounded up, and how the variable is called.
type Unit int

// Units.
const (
	CPU    Unit = iota // thousandths of a CPU
	Memory             // bytes
)

// Variable returns the name by which an expression refers to the pod's own resources.
func (u Unit) Variable() string {
	if u == CPU {
		return "cpu"
	}
	return "memory"
}

// maxBits limits numerators and denominators during the evaluation of an expression.
const maxBits = 512

// value is a number, or an amount of a resource.
type value struct {
	amount   *big.Rat
	quantity bool
}

// Expression is a parsed expression.
type Expression struct {
	root     node
	unit     Unit
	variable bool
}

// UsesVariable reports whether the value depends on the resources of the pod's own containers.
func (e *Expression) UsesVariable() bool { return e.variable }

// node is a part of an expression. It computes its value for a value of the variable.
type node func(variable *big.Rat) (value, error)

// Evaluate returns the value of the expression for the resources of the pod's own containers.
func (e *Expression) Evaluate(variable resource.Quantity) (resource.Quantity, error) {
	if err := foreign.CheckQuantity(variable); err != nil {
		return resource.Quantity{}, err
	}
	result, err := e.root(rational(variable))
	if err != nil {
		return resource.Quantity{}, err
	}
	if result.amount.Sign() < 0 {
		return resource.Quantity{}, ErrNegative
	}
	if e.unit == CPU {
		milli, err := ceiling(new(big.Rat).Mul(result.amount, big.NewRat(1000, 1)))
		return *resource.NewMilliQuantity(milli, resource.DecimalSI), err
	}
	bytes, err := ceiling(result.amount)
	return *resource.NewQuantity(bytes, resource.BinarySI), err
}

func rational(quantity resource.Quantity) *big.Rat {
	decimal := quantity.AsDec()
	amount := new(big.Rat).SetInt(decimal.UnscaledBig())
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(decimal.Scale(), -decimal.Scale()))), nil)
	if decimal.Scale() > 0 {
		return amount.Quo(amount, new(big.Rat).SetInt(scale))
	}
	return amount.Mul(amount, new(big.Rat).SetInt(scale))
}

func ceiling(amount *big.Rat) (int64, error) {
	whole, rest := new(big.Int).QuoRem(amount.Num(), amount.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return 0, ErrTooLarge
	}
	return whole.Int64(), nil
}

// operate applies an operator or function to two values.
func operate(operator string, a, b value) (value, error) {
	amount, quantity := new(big.Rat), a.quantity || b.quantity
	switch operator {
	case "+":
		amount.Add(a.amount, b.amount)
	case "-":
		amount.Sub(a.amount, b.amount)
	case "*":
		if a.quantity && b.quantity {
			return value{}, ErrTwoQuantities
		}
		amount.Mul(a.amount, b.amount)
	case "/":
		if b.quantity {
			return value{}, ErrTwoQuantities
		}
		if b.amount.Sign() == 0 {
			return value{}, ErrDivisionByZero
		}
		amount.Quo(a.amount, b.amount)
	case "max", "min":
		amount.Set(a.amount)
		if (a.amount.Cmp(b.amount) < 0) == (operator == "max") {
			amount.Set(b.amount)
		}
	default:
		return value{}, fmt.Errorf("unknown function %s", operator)
	}
	if amount.Num().BitLen() > maxBits || amount.Denom().BitLen() > maxBits {
		return value{}, ErrTooLarge
	}
	return value{amount, quantity}, nil
}
