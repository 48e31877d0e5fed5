"""Random numbers of the default algorithm are NumPy's and leave the same state."""

import numpy as np
import pytest

import cygrad


@pytest.mark.parametrize("seed", [0, 5, 2 ** 63])
def test_draws_are_those_of_numpy_in_any_order(seed):
    ours = cygrad.Generator().manual_seed(seed)
    theirs = np.random.Generator(np.random.PCG64(seed))
    for n in (1, 3, 100, 7, 0, 2049, 16, 70_001):
        assert np.array_equal(cygrad.randn(n, generator=ours).numpy(), theirs.standard_normal(n, dtype=np.float32))
        assert np.array_equal(cygrad.rand(n, generator=ours).numpy(), theirs.random(n, dtype=np.float32))
        assert np.array_equal(cygrad.randperm(n, generator=ours).numpy(), theirs.permutation(n))
        assert np.array_equal(cygrad.rand(n, generator=ours, dtype=cygrad.float64).numpy(), theirs.random(n))
        assert ours.numbers.bit_generator.state == theirs.bit_generator.state


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_uniform_numbers_of_any_number_of_threads_are_those_of_numpy(keep_number_of_threads, threads, dtype):
    cygrad.set_num_threads(threads)
    ours, theirs = cygrad.Generator().manual_seed(7), np.random.Generator(np.random.PCG64(7))
    for n in (16_384, 16_385, 1, 100_001, 32_767, 2, 200_000):
        for shape in (n, 1):                        # one float32 leaves half of a word
            assert np.array_equal(cygrad.rand(shape, generator=ours, dtype=getattr(cygrad, dtype)).numpy(),
                                  theirs.random(shape, dtype=dtype))
        assert np.array_equal(cygrad.rand(1, generator=ours).numpy(), theirs.random(1, dtype=np.float32))
        assert ours.numbers.bit_generator.state == theirs.bit_generator.state


def test_rare_layers_and_the_tail_of_the_normal_distribution_are_those_of_numpy():
    drawn = cygrad.randn(2_000_000, generator=cygrad.Generator().manual_seed(1)).numpy()
    assert np.array_equal(drawn, np.random.Generator(np.random.PCG64(1)).standard_normal(len(drawn), dtype=np.float32))
    assert np.abs(drawn).max() > 3.6541528853610088


def test_a_state_within_a_block_of_words_goes_on_from_there():
    generator = cygrad.Generator().manual_seed(3)
    cygrad.randn(101, generator=generator)
    state = generator.get_state()
    first = cygrad.randn(50, generator=generator)
    generator.set_state(state)
    assert cygrad.equal(cygrad.randn(50, generator=generator), first)
