"""``torch.return_types``: named tuples of results, found by calling the functions."""

import cygrad

_OF_A_ROW = ("aminmax", "cummax", "cummin", "max", "median", "min", "mode", "nanmedian", "sort")
_OF_A_MATRIX = ("geqrf", "qr", "svd", "slogdet", "linalg_eig", "linalg_eigh", "linalg_qr", "linalg_slogdet",
                "linalg_svd", "linalg_inv_ex", "linalg_cholesky_ex", "linalg_lu", "linalg_lu_factor")


def __getattr__(name):
    matrix = cygrad.eye(2)
    if name in _OF_A_ROW:
        result = getattr(cygrad, name)(matrix, dim=0)
    elif name in ("topk", "kthvalue"):
        result = getattr(cygrad, name)(matrix, 1)
    elif name in ("frexp", "histogram"):
        result = cygrad.frexp(matrix) if name == "frexp" else cygrad.histogram(matrix, 2)
    elif name in _OF_A_MATRIX:
        home = cygrad.linalg if name.startswith("linalg_") else cygrad
        result = getattr(home, name.removeprefix("linalg_"))(matrix)
    elif name == "lstsq":
        result = cygrad.linalg.lstsq(matrix, matrix)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(result)
