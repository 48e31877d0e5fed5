"""Named tuples of results: one class per function, pickling, copying."""

import copy
import pickle

import pytest

import cygrad

MATRIX = [[4.0, 1.0], [1.0, 3.0]]

FUNCTIONS = {
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(dim=1, keepdim=True),
    "median": lambda x: x.median(0),
    "nanmedian": lambda x: x.nanmedian(0),
    "mode": lambda x: x.mode(0),
    "sort": lambda x: x.sort(0),
    "topk": lambda x: x.topk(1),
    "kthvalue": lambda x: x.kthvalue(1),
    "cummax": lambda x: x.cummax(0),
    "aminmax": lambda x: x.aminmax(dim=0),
    "frexp": lambda x: x.frexp(),
    "histogram": lambda x: x.histogram(3),
    "linalg_geqrf": cygrad.geqrf,
    "svd": lambda x: x.svd(),
    "lu_unpack": lambda x: cygrad.lu_unpack(*cygrad.linalg.lu_factor(x)),
    "triangular_solve": lambda x: cygrad.triangular_solve(x, x),
    "linalg_qr": cygrad.linalg.qr,
    "linalg_svd": cygrad.linalg.svd,
    "linalg_eig": cygrad.linalg.eig,
    "linalg_eigh": cygrad.linalg.eigh,
    "linalg_slogdet": cygrad.linalg.slogdet,
    "linalg_inv_ex": cygrad.linalg.inv_ex,
    "linalg_cholesky_ex": cygrad.linalg.cholesky_ex,
    "linalg_lu_factor": cygrad.linalg.lu_factor,
    "linalg_lu_factor_ex": cygrad.linalg.lu_factor_ex,
    "linalg_ldl_factor": cygrad.linalg.ldl_factor,
    "linalg_ldl_factor_ex": cygrad.linalg.ldl_factor_ex,
    "linalg_solve_ex": lambda x: cygrad.linalg.solve_ex(x, x),
    "linalg_lstsq": lambda x: cygrad.linalg.lstsq(x, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_named_pickled_and_copied(name):
    result = FUNCTIONS[name](cygrad.tensor(MATRIX))
    assert type(result).__name__ == name
    assert type(result) is type(FUNCTIONS[name](cygrad.tensor(MATRIX)))
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert again._fields == result._fields
        assert all(cygrad.equal(one, other) for one, other in zip(again, result, strict=True))


def test_histogram_of_points_is_named():
    result = cygrad.histogramdd(cygrad.tensor(MATRIX), bins=[2, 2])
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert cygrad.equal(again.hist, result.hist)
