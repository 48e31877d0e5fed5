"""Samples: systems of linear equations, determinants, functions and norms of matrices."""

import cygrad

from .sample import Sample, call, fails, only_floating

INF = float("inf")


def regular(make, *shape):
    """Matrices far from singular."""
    return make(shape, -0.5, 0.5) + 2 * cygrad.eye(shape[-1], dtype=cygrad.float32).to(make(()).dtype)


def square(**kwargs):
    """Builders: one matrix, a batch, transposed, of size 1, none and without elements."""
    return only_floating([
        lambda make, dtype: Sample((regular(make, 3, 3),), kwargs),
        lambda make, dtype: Sample((regular(make, 2, 2, 2),), kwargs),
        lambda make, dtype: Sample((regular(make, 3, 3).t(),), kwargs),
        lambda make, dtype: Sample((regular(make, 1, 1),), kwargs),
        call((0, 2, 2), **kwargs),
        call((2, 0, 0), **kwargs),
    ])


def pairs(*shapes, **kwargs):
    """Builders: square matrices and right-hand sides of such shapes."""
    return only_floating([
        lambda make, dtype, first=first, second=second: Sample((regular(make, *first), make(second)), kwargs)
        for first, second in shapes
    ])


def matrices(**kwargs):
    """Builders: wide, tall and a batch."""
    return only_floating([call((2, 3), **kwargs), call((4, 2), **kwargs), call((2, 3, 2), **kwargs),
                          lambda make, dtype: Sample((make((3, 2)).t(),), kwargs)])


def norms(*orders):
    return [builder for order in orders for builder in only_floating([call((2, 3), order), call((2, 2, 3), order)])]


LEFT = (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)),
        ((0, 3, 3), (0, 3, 2)), ((0, 0), (0, 2)), ((2, 2), (2, 0)))
RIGHT = (((3, 3), (2, 3)), ((2, 1, 3, 3), (2, 2, 3)), ((0, 0), (2, 0)))
NOT_SQUARE = fails(RuntimeError, "square", (2, 3))
NO_MATRIX = fails(RuntimeError, "two dimensions or more|at least 2", (3,))
ERRORS = [NOT_SQUARE, NO_MATRIX]


def triangle(matrix, upper=False):
    """Return the triangle of a matrix that a function reads."""
    return matrix.triu() if upper else matrix.tril()


# Functions that read a triangle, called with it only, because PyTorch has gradients for the other one.
WRAPPED = {
    "cholesky_solve": lambda lib: lambda B, L, upper=False: lib.cholesky_solve(B, triangle(L, upper), upper),
    "cholesky_inverse": lambda lib: lambda L, upper=False: lib.cholesky_inverse(triangle(L, upper), upper),
    "linalg.lu_solve": lambda lib: lambda A, B, **options: lib.linalg.lu_solve(*lib.linalg.lu_factor(A), B, **options),
    "lu_unpack": lambda lib: lambda A: tuple(lib.lu_unpack(*lib.linalg.lu_factor(A))),
    # PyTorch's own warns that it is old.
    "triangular_solve": lambda lib: lambda A, b: tuple(lib.triangular_solve(b, A)) if lib is cygrad else (
        lib.linalg.solve_triangular(A, b, upper=True), A.clone()),
}


def with_real_diagonal(*shapes, **kwargs):
    """Builders: the factor first or last, with a real diagonal."""
    def build(make, dtype):
        made = [make(shape) for shape in shapes[:-1]]
        factor = regular(make, *shapes[-1])
        return Sample((*made, factor.tril(-1) + factor.triu(1) + 2 * cygrad.eye(shapes[-1][-1]).to(dtype)), kwargs)

    return only_floating([build])


SAMPLES = {
    "linalg.inv": [*square(), *ERRORS,
                   lambda make, dtype: Sample((make((2, 2)) * 0,), error=cygrad.linalg.LinAlgError, match="singular")],
    "linalg.inv_ex": [*square(), *ERRORS],
    "linalg.det": [*square(), *ERRORS],
    "linalg.slogdet": [*square(), *ERRORS],
    "logdet": [*square(), *ERRORS],
    "linalg.matrix_exp": [*square(), *ERRORS],
    "linalg.solve": [*pairs(*LEFT), *pairs(*RIGHT, left=False),
                     fails(RuntimeError, "do not match", (2, 2), (3, 1)), fails(RuntimeError, "square", (2, 3), (2,)),
                     fails(RuntimeError, "left=False", (2, 2), (2,), left=False)],
    "linalg.solve_ex": pairs(*LEFT[:2]),
    "linalg.solve_triangular": [
        *[builder for upper in (False, True) for unit in (False, True) for builder in (
            *pairs(((3, 3), (3, 2)), ((2, 1, 2, 2), (3, 2, 1)), ((0, 0), (0, 2)), upper=upper, unitriangular=unit),
            *pairs(((3, 3), (2, 3)), upper=upper, unitriangular=unit, left=False))],
        fails(RuntimeError, "Incompatible", (2, 2), (3, 1), upper=True),
        fails(RuntimeError, "square", (2, 3), (2, 1), upper=True)],
    "linalg.lu_solve": [*pairs(((3, 3), (3, 2)), ((2, 2, 2), (2, 1)), ((0, 0), (0, 2))),
                        *pairs(((3, 3), (3, 2)), adjoint=True), *pairs(((3, 3), (2, 3)), left=False),
                        *pairs(((3, 3), (2, 3)), left=False, adjoint=True)],
    "lu_unpack": [*square()],
    "triangular_solve": pairs(((3, 3), (3, 2)), ((2, 1, 2, 2), (3, 2, 1)), ((0, 0), (0, 2))),
    "linalg.lu": [*square(), *matrices(), *only_floating([call((0, 3)), call((3, 0))]), NO_MATRIX,
                  fails(RuntimeError, "pivot=False is not supported", (2, 2), pivot=False)],
    "linalg.lu_factor": [*square(), *matrices(), NO_MATRIX],
    "cholesky_solve": [*with_real_diagonal((3, 2), (3, 3)), *with_real_diagonal((2, 1), (2, 2), upper=True),
                       fails(RuntimeError, "square", (2, 2), (2, 3))],
    "cholesky_inverse": [*with_real_diagonal((3, 3)), *with_real_diagonal((2, 2, 2), upper=True), *ERRORS],
    "linalg.tensorinv": [*only_floating([
        lambda make, dtype: Sample((regular(make, 4, 4).reshape(2, 2, 4),), {"ind": 2})]),
                         fails(RuntimeError, "ind", (2, 2), 0), fails(RuntimeError, "as many elements", (2, 3), 1)],
    "linalg.tensorsolve": only_floating([
        lambda make, dtype: Sample((regular(make, 6, 6).reshape(2, 3, 3, 2), make((2, 3)))),
        lambda make, dtype: Sample((regular(make, 4, 4).reshape(2, 2, 4).permute(0, 2, 1), make((2, 2))),
                                   {"dims": (1,)})]),
    "linalg.matrix_power": [*[builder for n in (-2, 0, 1, 2, 3, 5) for builder in only_floating([
        lambda make, dtype, n=n: Sample((regular(make, 2, 3, 3), n))])], call((2, 2), 3),
        fails(RuntimeError, "square", (2, 3), 2)],
    "linalg.multi_dot": [lambda make, dtype: Sample(([make((2, 3)), make((3, 1)), make((1, 4))],)),
                         lambda make, dtype: Sample(([make((3,)), make((3, 2)), make((2,))],)),
                         lambda make, dtype: Sample(([make((2,))],), error=RuntimeError, match="2 tensors")],
    "linalg.vecdot": only_floating([call((2, 3), (3,)), call((2, 3), (2, 1), dim=0), call((0, 3), (0, 3))]),
    "linalg.vander": [*only_floating([call((3,)), call((2, 3), N=4)]), fails(RuntimeError, "N", (3,), 1)],
    "linalg.cross": [call((2, 3), (2, 3)), call((3, 1), (3, 2), dim=0), fails(RuntimeError, "3", (2,), (2,))],
    "linalg.diagonal": [call((2, 3)), call((2, 3, 2), offset=1), fails(IndexError, "dim", (3,))],
    "linalg.matmul": [call((2, 3), (3, 2))],
    "linalg.vector_norm": [*norms(2, 1, 0.5, 3, INF, -INF, 0), *only_floating([
        call((2, 3), 2, 1), call((2, 3), 1, dim=(0, 1), keepdim=True), call((0, 3), 2)]),
        fails(RuntimeError, "is not defined", (0,), INF), fails(TypeError, "ord", (2,), "fro")],
    "linalg.matrix_norm": [*norms("fro", "nuc", 2, -2, 1, -1, INF, -INF), *only_floating([
        call((2, 3, 2), "nuc", dim=(0, 2), keepdim=True), call((2, 3, 2), 1, dim=(2, 0)), call((0, 3), "fro")]),
        fails(RuntimeError, "not supported", (2, 2), 3), fails(RuntimeError, "different", (2, 2), 1, dim=(0, 0)),
        fails(IndexError, "dim", (2, 2), 1, dim=(0, 2))],
    "linalg.norm": [*only_floating([call((2, 3)), call((2, 3), 1), call((3,), 1), call((2, 2, 3), None, dim=(0, 1)),
                                    call((2, 3), "nuc"), call((2, 3, 2), 2, 1)]),
                    fails(RuntimeError, "a vector or a matrix", (2, 2, 2), 2),
                    fails(RuntimeError, "one or two dimensions", (2, 2, 2), 2, dim=(0, 1, 2))],
    "linalg.cond": [*square(), *[builder for p in ("fro", "nuc", 1, INF, -1, -2) for builder in square(p=p)[:2]],
                    fails(RuntimeError, "norm type", (2, 2), "x"), NO_MATRIX],
}
COMPLEX = set(SAMPLES)
HELPERS = {
    "adjoint": "linalg.solve",
    "identity_like": "linalg.lu",
    "refuse_gradient": "linalg.qr",
    "underived": "unique",
    "unknown_gradient": "igamma",
    "linalg_solve_triangular": "linalg.solve_triangular",
    "linalg_lu_factor_ex": "linalg.lu_factor",
    "linalg_permute_rows": "linalg.lu",
    "linalg_solve_with": "linalg.solve",
    "linalg_inv_ex": "linalg.inv_ex",
    "linalg_det": "linalg.det",
    "linalg_cofactor": "linalg.det",
    "linalg_cofactor_backward": "linalg.det",
    "linalg_cofactor_second": "linalg.det",
    "linalg_slogdet": "linalg.slogdet",
    "linalg_matrix_exp": "linalg.matrix_exp",
}
