"""Pairwise distances, of which one half is mirrored."""

import numpy as np
import pytest

import cygrad


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 65, 257, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_pairs_have_the_distances_that_all_vectors_have(count, dtype, p, threads):
    vectors = np.random.default_rng(count).standard_normal((count, 7)).astype(dtype)
    if count > 20:
        vectors[5, 2], vectors[9, 1] = np.inf, np.nan
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(threads)
    try:
        x = cygrad.from_numpy(vectors)
        within = cygrad.operators.operators.distances_within(x, p).numpy()
        between = cygrad.cdist(x, cygrad.from_numpy(vectors.copy()), p).numpy()
        pairs = cygrad.pdist(x, p).numpy()
    finally:
        cygrad.set_num_threads(before)
    np.testing.assert_array_equal(within, between)
    np.testing.assert_array_equal(pairs, between[np.triu_indices(count, 1)])
    differences = np.abs(vectors[:, None].astype(np.float64) - vectors.astype(np.float64))
    exact = differences.sum(-1) if p == 1 else np.sqrt(np.square(differences).sum(-1))
    np.testing.assert_allclose(between, exact, rtol=1e-5 if dtype == np.float32 else 1e-13)
