"""Functions that modify a tensor in place: the methods of the same names, called as functions."""

from cygrad._core.graph.tensor import Tensor

__all__ = ["FUNCTIONS"]

UNARY = """
    abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ cos_ cosh_
    deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ i0_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_
    negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_
"""
# The other arguments of an example.
OTHERS = {"clamp_": "0, 1", "clamp_max_": "1", "clamp_min_": "0", "clip_": "0, 1", "fill_": "2"}
DOC = """In-place version of `{plain}`: the method of this name as a function.

Parameters
----------
input : Tensor
    Changed.
*args, **kwargs
    What the method takes.

Returns
-------
Tensor
    `input` itself.

Examples
--------
>>> import cygrad
>>> x = cygrad.tensor([0.5])
>>> cygrad.{name}({arguments}) is x
True
"""


def _function(name, others):
    def changed(input, *args, **kwargs):
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}: argument 'input' must be a Tensor (got {type(input).__name__}).")
        return getattr(input, name)(*args, **kwargs)

    changed.__name__ = changed.__qualname__ = name
    changed.__doc__ = DOC.format(plain=name[:-1], name=name, arguments=", ".join(["x", *others]))
    return changed


FUNCTIONS = {name: _function(name, []) for name in UNARY.split()}
FUNCTIONS |= {name: _function(name, [others]) for name, others in OTHERS.items()}
