"""Generate lines that call element-wise operators."""

from tests.programs.chooser import (
    fits,
    has_zeros,
    is_bool,
    is_complex,
    is_floating,
    is_integer,
    is_neat,
    is_real,
    is_tame,
    shape,
)

SMOOTH = (
    "exp",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "erf",
    "sinh",
    "cosh",
    "atan",
    "asinh",
    "expm1",
    "exp2",
    "erfc",
    "tan",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "square",
    "neg",
    "asin",
    "acos",
    "atanh",
    "clone",
    "contiguous",
    "positive",
    "sinc",
)
KINKED = (
    "relu",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "sgn",
    "signbit",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "angle",
)
FUNCTIONAL = (
    "elu",
    "leaky_relu",
    "gelu",
    "silu",
    "softplus",
    "hardtanh",
    "relu6",
    "mish",
    "selu",
    "celu",
    "logsigmoid",
)
UNARY_IN_PLACE = (
    "exp_",
    "sin_",
    "cos_",
    "neg_",
    "tanh_",
    "sigmoid_",
    "square_",
    "sqrt_",
    "reciprocal_",
    "log1p_",
    "zero_",
    "atan_",
    "rsqrt_",
    "expm1_",
    "erf_",
    "log_",
)
KINKED_IN_PLACE = ("relu_", "abs_", "floor_", "sign_", "trunc_", "frac_", "round_")
SMOOTH_BINARY = ("add", "sub", "mul", "div", "hypot", "logaddexp")
# Without `remainder`: its zeros may have another sign.
KINKED_BINARY = (
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "copysign",
    "fmod",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "floor_divide",
    "xlogy",
)
NUMBERS = ("2", "0.5", "-1", "1", "0", "3", "-0.25", "True", "1.5", "inf", "1j")


def number_for(c, value):
    """A number to combine with the value. What infinities make of complex numbers is open."""
    number = c.of(NUMBERS)
    return "2" if number == "inf" and is_complex(value) else number


def unary(c):
    """A function of one tensor."""
    x = c.value(is_tame)
    if x is not None and c.chance(12):
        return f"(v[{x}].abs() + 1.25).acosh()"  # outside its domain torch has gradients that are not nan
    if x is None:
        return None
    text, name = c.of((f"v[{x}].{{}}()", f"t.{{}}(v[{x}])")), c.of(SMOOTH)
    if name == "sinc" and not is_neat(c.machine.values[x]):
        name = "sin"  # torch's second derivative is lost to rounding where elements are almost zero
    return text.format(name)


def kinked(c):
    """A function with jumps or kinks."""
    x = c.value(is_neat)
    if x is None:
        return None
    name = c.of(KINKED)
    if name == "sgn" and not is_tame(c.machine.values[x]):
        return None  # the direction of infinite complex numbers is open
    return f"v[{x}].{name}()"


def activation(c):
    """An activation function."""
    x = c.value(is_neat, is_real)
    return None if x is None else f"F.{c.of(FUNCTIONAL)}(v[{x}])"


def in_place(c):
    """A function of one tensor that changes it."""
    x = c.value(is_tame)
    return None if x is None else f"v[{x}].{c.of(UNARY_IN_PLACE)}()"


def kinked_in_place(c):
    """The same, of one with kinks."""
    x = c.value(is_neat)
    return None if x is None else f"v[{x}].{c.of(KINKED_IN_PLACE)}()"


def binary(c):
    """A function of two tensors, which broadcast."""
    x = c.value(is_tame)
    y = None if x is None else c.value(is_tame, fits(c.machine.values[x]))
    return None if y is None else f"t.{c.of(SMOOTH_BINARY)}(v[{x}], v[{y}])"


def kinked_binary(c):
    """The same, of one with kinks."""
    x = c.value(is_neat)
    y = None if x is None else c.value(is_neat, fits(c.machine.values[x]))
    if y is None:
        return None
    name = c.of(KINKED_BINARY)
    if name in ("copysign", "atan2") and has_zeros(c.machine.values[x]):
        return None  # second derivatives at zero are open
    return f"t.{name}(v[{x}], v[{y}])"


def symbol(c):
    """Arithmetic as one writes it, with a tensor or a number on either side."""
    x = c.value(is_tame)
    if x is None:
        return None
    y = c.value(is_tame, fits(c.machine.values[x]))
    other = c.of((f"v[{y}]", number_for(c, c.machine.values[x])))
    sign = c.of(("+", "*", "-", "/", "+", "*", "-"))
    return c.of((f"v[{x}] {sign} {other}", f"{other} {sign} v[{x}]"))


def power(c):
    """A power with a number or a tensor as the exponent."""
    x = c.value(is_tame)
    if x is None:
        return None
    y = c.value(is_neat, is_tame, fits(c.machine.values[x]))
    if y is None or (is_complex(c.machine.values[x]) and not is_tame(c.machine.values[x])):
        return None  # powers of infinite complex numbers are open
    if has_zeros(c.machine.values[x]):
        return f"v[{x}] ** 2"  # second derivatives of other powers of zero are open
    return c.of(
        (
            f"v[{x}] ** {c.of(('2', '3', '0.5', '1', '-1', '1.5', '-2'))}",
            f"v[{x}].pow(v[{y}])",
            f"{c.of(('2', '1.5', '1'))} ** v[{x}]",
        )
    )


def binary_in_place(c):
    """A function of two tensors that changes the first one."""
    x = c.value(is_tame)
    if x is None:
        return None
    y = c.value(is_tame, fits(c.machine.values[x], into=True))
    # A tensor of integers that is given a history is of no use in torch.
    tensor = f"v[{y}]" if is_floating(c.machine.values[x]) else f"v[{y}].detach()"
    other = c.of((tensor, number_for(c, c.machine.values[x])))
    name = c.of(("add_", "mul_", "sub_", "div_", "copy_", "pow_", "fill_", "atan2_", "hypot_"))
    if name in ("pow_", "atan2_") and has_zeros(c.machine.values[x]):
        name = "mul_"  # derivatives of powers of zero are open, and complex ones their values; and those of angles
    return f"v[{x}].{name}({other})"


def operator_in_place(c):
    """`+=` and its like: through the method, as a line is an expression."""
    x = c.value(is_tame)
    if x is None:
        return None
    y = c.value(is_tame, fits(c.machine.values[x], into=True))
    other = c.of((f"v[{y}]", number_for(c, c.machine.values[x])))
    return f"v[{x}].__{c.of(('iadd', 'imul', 'isub', 'itruediv'))}__({other})"


def with_out(c):
    """An operator that writes into a given tensor."""
    x = c.value(is_tame, is_floating)
    if x is None:
        return None
    y = c.value(is_tame, fits(c.machine.values[x], into=True))
    if y is None or not is_floating(c.machine.values[x]):
        return None  # results for integers have single precision, wherever they are written
    out = c.value(lambda value: shape(value) == shape(c.machine.values[x]))
    return c.of(
        (
            f"t.{c.of(('add', 'mul', 'sub', 'div'))}(v[{x}], v[{y}], out=v[{out}])",
            f"t.{c.of(('exp', 'sin', 'neg', 'tanh'))}(v[{x}], out=v[{out}])",
        )
    )


def three(c):
    """An operator of three tensors."""
    x = c.value(is_tame)
    if x is None:
        return None
    own = fits(c.machine.values[x])
    y, z = c.value(is_tame, is_floating, own), c.value(is_tame, is_floating, own)
    name = c.of(("addcmul", "addcdiv", "lerp"))
    if c.chance(3):
        return f"v[{x}].{name}_(v[{y}], v[{z}])"
    return f"t.{name}(v[{x}], v[{y}], {c.of((f'v[{z}]', '0.25')) if name == 'lerp' else f'v[{z}]'})"


def choice(c):
    """`where`, `masked_fill` and their like."""
    x = c.value(is_tame)
    if x is None:
        return None
    first = c.machine.values[x]
    y = c.value(is_tame, fits(first))
    mask = c.value(is_bool, fits(first, into=True))
    if mask is None:
        z = c.value(is_neat, fits(first))
        mask = f"(v[{z}] > 0)"
    else:
        mask = f"v[{mask}]"
    return c.of(
        (
            f"t.where({mask}, v[{x}], v[{y}])",
            f"v[{x}].masked_fill({mask}, {c.of(NUMBERS)})",
            f"v[{x}].masked_fill_({mask}, {c.of(NUMBERS)})",
            f"v[{x}].masked_select({mask})",
        )
    )


def bounds(c):
    """`clamp` in its forms."""
    x = c.value(is_neat)
    if x is None:
        return None
    limits = c.of(("-0.5, 0.75", "min=0.25", "max=0.5", "1, -1", "min=0", "-1, 1"))
    if c.chance(4):
        y = c.value(is_neat, fits(c.machine.values[x]))
        limits = c.of((f"min=v[{y}]", f"max=v[{y}]", f"v[{y}], v[{y}] + 1"))
    return f"v[{x}].{c.of(('clamp', 'clamp_'))}({limits})"


def cast(c):
    """Another dtype."""
    x = c.value()
    if x is None:
        return None
    y = c.value()
    return f"v[{x}]." + c.of(
        ("to(t.float64)", "double()", "to(t.float32)", "to(t.complex128)", f"type_as(v[{y}])", f"to(v[{y}])")
    )


def make_complex(c):
    """From real parts to complex numbers and back."""
    z = c.value(is_complex, is_tame)
    if z is not None and not c.chance(3):
        return c.of(
            (f"t.real(v[{z}])", f"t.imag(v[{z}])", f"t.view_as_real(v[{z}])", f"m.conj(v[{z}])", f"v[{z}].abs()")
        )
    x = c.value(is_real, is_neat)
    if x is None:
        return None
    y = c.value(is_real, is_neat, lambda value: value.dtype == c.machine.values[x].dtype, fits(c.machine.values[x]))
    if y is None or not (is_neat(c.machine.values[x]) and is_neat(c.machine.values[y])):
        return None
    # PyTorch's derivative of polar is for positive lengths only, and reads the result, cygrad's reads the arguments: no
    # other value refers to them.
    return c.of((f"t.complex(v[{x}], v[{y}])", f"t.polar(v[{x}].abs() + 1, v[{y}] * 1) * 1"))


def bits(c):
    """Logic on integers and masks."""
    x = c.value(lambda value: not is_floating(value))
    if x is None:
        return None
    y = c.value(lambda value: is_integer(value) or is_bool(value), fits(c.machine.values[x]))
    return c.of((f"v[{x}] & v[{y}]", f"v[{x}] | v[{y}]", f"v[{x}] ^ v[{y}]", f"~v[{x}]"))


WRITERS = (
    unary,
    kinked,
    activation,
    in_place,
    kinked_in_place,
    binary,
    kinked_binary,
    symbol,
    power,
    binary_in_place,
    operator_in_place,
    with_out,
    three,
    choice,
    bounds,
    cast,
    make_complex,
    bits,
)
