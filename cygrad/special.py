"""Special functions, under the names of the field."""

from cygrad import composite
from cygrad._core import public_dir as _public_dir
from cygrad._core.table.operator import operators

__all__ = []

# Name here -> name of the row, or of the composed function.
_ROWS = """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expm1 hermite_polynomial_h hermite_polynomial_he i0
    i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr modified_bessel_k0 modified_bessel_k1 ndtr
    ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc
    spherical_bessel_j0 xlog1py xlogy
"""
_OTHER = {
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "logit": "logit",
    "log_softmax": "log_softmax", "logsumexp": "logsumexp", "modified_bessel_i0": "i0", "modified_bessel_i1": "i1",
    "multigammaln": "mvlgamma", "polygamma": "polygamma", "psi": "digamma", "round": "round", "softmax": "softmax",
}

for _name, _row in {**{name: name for name in _ROWS.split()}, **_OTHER}.items():
    globals()[_name] = composite.FUNCTIONS.get(_row) or getattr(operators, _row)
    __all__.append(_name)

zeta = composite.gamma.zeta
__all__.append("zeta")

__dir__ = _public_dir(__name__)
