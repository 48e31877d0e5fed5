"""Numbers out of the range of their dtype, or of a wrong kind, raise an error instead of wrapping around."""

import math

import pytest

import cygrad
import cygrad.nn.functional as F

BELOW = {cygrad.uint8: 255, cygrad.int8: 127, cygrad.int16: 2**15 - 1, cygrad.int32: 2**31 - 1}
MASK = [True, False, True]
INDEX = [0, 2]
INTEGER = {
    "hardtanh": lambda x, n: F.hardtanh(x, 0, n),
    "hardtanh_": lambda x, n: F.hardtanh_(x, 0, n),
    "pow": lambda x, n: x.pow(n),
    "pow_": lambda x, n: x.pow_(n),
    "**": lambda x, n: x ** n,
    "clamp": lambda x, n: x.clamp(0, n),
    "clamp_": lambda x, n: x.clamp_(max=n),
    "where": lambda x, n: cygrad.where(cygrad.tensor(MASK), x, n),
    "add": lambda x, n: x.add(x, alpha=n),
    "add_": lambda x, n: x.add_(x, alpha=n),
    "sub": lambda x, n: cygrad.sub(x, x, alpha=n),
    "rsub": lambda x, n: cygrad.rsub(x, x, alpha=n),
    "addcmul": lambda x, n: cygrad.addcmul(x, x, x, value=n),
    "addmm": lambda x, n: cygrad.addmm(x[None], x[:1, None], x[None], alpha=n),
    "addmm beta": lambda x, n: cygrad.addmm(x[None], x[:1, None], x[None], beta=n),
    "addmv": lambda x, n: cygrad.addmv(x, x[:, None], x[:1], alpha=n),
    "addr": lambda x, n: cygrad.addr(x[None], x[:1], x, beta=n),
    "baddbmm": lambda x, n: cygrad.baddbmm(x[None, None], x[None, :1, None], x[None, None], alpha=n),
    "addbmm": lambda x, n: cygrad.addbmm(x[None], x[None, :1, None], x[None, None], beta=n),
    "index_add": lambda x, n: x.index_add(0, cygrad.tensor(INDEX), x[:2], alpha=n),
    "masked_fill of a tensor": lambda x, n: x.masked_fill(cygrad.tensor(MASK), cygrad.tensor(n)),
    "masked_fill_ of a tensor": lambda x, n: x.masked_fill_(cygrad.tensor(MASK), cygrad.tensor(n)),
    "index_fill of a tensor": lambda x, n: x.index_fill(0, cygrad.tensor(INDEX), cygrad.tensor(n)),
    "pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "linspace": lambda x, n: cygrad.linspace(0, n, 3, dtype=x.dtype),
}


@pytest.mark.parametrize("dtype", BELOW)
@pytest.mark.parametrize("name", INTEGER)
def test_numbers_out_of_the_range_of_integers_are_refused(name, dtype):
    x = cygrad.ones(3, dtype=dtype)
    limit = BELOW[dtype]
    assert INTEGER[name](x.clone(), limit).dtype is dtype
    for number in (limit + 1, 2**40):
        with pytest.raises(RuntimeError, match=f"{name.split()[0].strip('*_')}.*value cannot be converted to type "
                                               f".* without overflow .got {number}"):
            INTEGER[name](x, number)
    assert x.tolist() == [1, 1, 1]


def test_fractions_out_of_the_range_of_integers_are_refused():
    x = cygrad.ones(3, dtype=cygrad.uint8)
    with pytest.raises(RuntimeError, match=r"hardtanh.*without overflow"):
        F.hardtanh(x, 0, 3e5)
    with pytest.raises(RuntimeError, match=r"masked_fill.*without overflow"):
        x.masked_fill(cygrad.tensor(MASK), cygrad.tensor(float("inf")))


@pytest.mark.parametrize("function", [cygrad.add, cygrad.sub, cygrad.rsub, cygrad.mul])
def test_operands_of_sums_wrap_around_as_elements_do(function):
    x = cygrad.ones(3, dtype=cygrad.uint8)
    assert function(x, 300).tolist() == function(x, cygrad.tensor(300 % 256, dtype=cygrad.uint8)).tolist()


def test_powers_of_integers_with_fractions_are_floating():
    assert cygrad.full((1,), 4, dtype=cygrad.uint8).pow(300.5).item() == float("inf")


ELEMENTS = {
    "clamp": lambda x, n: x.clamp(n),
    "clamp_": lambda x, n: x.clamp_(max=n),
    "hardtanh": lambda x, n: F.hardtanh(x, -n, n),
    "threshold": lambda x, n: F.threshold(x, 0, n),
    "pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "masked_fill of a tensor": lambda x, n: x.masked_fill(cygrad.tensor(MASK), cygrad.tensor(n, dtype=cygrad.float64)),
    "index_fill of a tensor": lambda x, n: x.index_fill(
        0, cygrad.tensor(INDEX), cygrad.tensor(n, dtype=cygrad.float64)),
    "fill_": lambda x, n: x.fill_(n),
    "full_like": lambda x, n: cygrad.full_like(x, n),
    "linspace": lambda x, n: cygrad.linspace(0, n, 3, dtype=x.dtype),
}


@pytest.mark.parametrize(("dtype", "large"), [(cygrad.float16, 65504.0), (cygrad.bfloat16, 3.38e38),
                                              (cygrad.float32, 3.4e38)])
@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_out_of_the_range_of_floats_are_refused(name, dtype, large):
    x = cygrad.ones(3, dtype=dtype)
    assert ELEMENTS[name](x.clone(), large).isfinite().all()
    if "linspace" not in name:
        ELEMENTS[name](x.clone(), float("inf"))                  # infinities are asked for
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
        ELEMENTS[name](x, large * 1.1)


@pytest.mark.parametrize("name", ["add", "addcmul", "addcdiv", "leaky_relu", "elu", "softplus", "lerp", "where"])
def test_factors_out_of_the_range_of_single_precision_are_refused(name):
    x = cygrad.zeros(3)
    calls = {"add": lambda n: x.add(x, alpha=n), "addcmul": lambda n: x.addcmul(x, x, value=n),
             "addcdiv": lambda n: x.addcdiv(x, x + 1, value=n), "leaky_relu": lambda n: F.leaky_relu(x, n),
             "elu": lambda n: F.elu(x, n), "softplus": lambda n: F.softplus(x, n), "lerp": lambda n: x.lerp(x, n),
             "where": lambda n: cygrad.where(x > 0, x, n)}
    assert not calls[name](3e38).isnan().any()
    with pytest.raises(RuntimeError, match=rf"{name}.*without overflow"):
        calls[name](1e39)


def test_factors_of_16_bit_floats_are_those_of_single_precision():
    x = cygrad.full((1,), 2.0**-10, dtype=cygrad.float16)
    assert x.add(x, alpha=2.0**20).item() == 1024
    assert x.pow(1e6).item() == 0


@pytest.mark.parametrize("key", [0, slice(None), [0, 1], cygrad.tensor([True, False, True])])
def test_assigned_numbers_round_to_infinity_in_short_floats(key):
    for number, dtype in ((-1e9, cygrad.float16), (70000, cygrad.float16), (1e39, cygrad.bfloat16)):
        x = cygrad.ones(3, dtype=dtype)
        x[key] = number
        assert x[key].isinf().all() and (x[key] > 0).all() == (number > 0)
    x = cygrad.ones(3, dtype=cygrad.float16)
    x[key] = 65510                                         # out of the range, too, but nearer to its end
    assert (x[key] == 65504).all()


@pytest.mark.parametrize("name", ["pad", "pad_sequence", "linspace", "logspace"])
def test_elements_of_unsigned_integers_refuse_negative_numbers(name):
    x = cygrad.tensor([1, 2], dtype=cygrad.uint8)
    calls = {"pad": lambda n: F.pad(x, (1, 1), value=n),
             "pad_sequence": lambda n: cygrad.nn.utils.rnn.pad_sequence([x, x[:1]], padding_value=n),
             "linspace": lambda n: cygrad.linspace(n, 9, 2, dtype=cygrad.uint8),
             "logspace": lambda n: cygrad.logspace(1, 1, 2, base=n, dtype=cygrad.uint8)}
    assert 7 in calls[name](7)
    with pytest.raises(RuntimeError, match=rf"{name}: .*uint8 without overflow"):
        calls[name](-1)


@pytest.mark.parametrize("name", ["clamp", "where"])
def test_floats_beyond_the_dtype_of_the_result_are_refused_beside_integers(name):
    x = cygrad.tensor([1, 2])
    calls = {"clamp": lambda n: x.clamp(min=n), "where": lambda n: cygrad.where(x > 1, x, n)}
    for number in (3e38, float("inf")):
        assert calls[name](number)[0] == cygrad.tensor(number)
    with pytest.raises(RuntimeError, match=rf"{name}: .*float32 without overflow"):
        calls[name](3.5e38)


def test_powers_out_of_the_range_of_integers_are_refused_by_logspace():
    assert cygrad.logspace(0, 2, 3, dtype=cygrad.int8).tolist() == [1, 10, 100]
    for end, base in ((3, 10), (300, 10), (400, 10), (3, -10), (0.5, -2)):
        with pytest.raises(RuntimeError, match=r"logspace: .*int8 without overflow"):
            cygrad.logspace(0, end, 3, base=base, dtype=cygrad.int8)
    with pytest.raises(RuntimeError, match=r"logspace: .* without overflow"):
        cygrad.logspace(0, 63.5, 2, base=2, dtype=cygrad.uint64)


def test_the_largest_integers_are_ends_of_ranges():
    largest = 2**63 - 1
    assert cygrad.linspace(largest, 0, 1, dtype=cygrad.int64).tolist() == [largest]
    assert cygrad.linspace(0, largest, 2, dtype=cygrad.int64).tolist() == [0, largest]
    assert cygrad.arange(largest - 1, largest).tolist() == [largest - 1]
    with pytest.raises(OverflowError, match="arange: an integer does not fit 64 bits"):
        cygrad.arange(largest, largest + 2)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_logarithms_of_numbers_are_not_rounded_to_an_integer_dtype(name):
    function, log = getattr(cygrad.special, name), {"xlogy": math.log, "xlog1py": math.log1p}[name]
    for dtype, number in ((cygrad.int8, 128), (cygrad.uint8, 1000), (cygrad.int32, 2**40), (cygrad.bool, 5)):
        x = cygrad.tensor([0, 1], dtype=dtype)
        assert function(x, number).tolist() == pytest.approx([0, log(number)])
        assert function(number, x + 1).tolist() == pytest.approx([number * log(1), number * log(2)])
        assert function(x, cygrad.tensor(2.0, dtype=cygrad.float64)).dtype == cygrad.float64
    assert function(cygrad.tensor([1], dtype=cygrad.uint8), -2).isnan().all()


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
def test_products_with_logarithms_do_not_depend_on_the_layout(name, dtype):
    function = getattr(cygrad.special, name)
    x, y = cygrad.rand(2, 1100, dtype=dtype).t(), cygrad.rand(2, 1100, dtype=dtype).t()
    x[::3], y[1, 0], x[1, 0] = 0, math.nan, 0
    result = function(x, y)
    assert cygrad.equal(result.nan_to_num(7), function(x.contiguous(), y.contiguous()).nan_to_num(7))
    assert result[1, 0].isnan() and (result[::3] == 0).all()
    assert cygrad.equal(function(x, y[:1]), function(x, y[:1].expand(1100, 2).contiguous()))
    assert cygrad.equal(function(x, y, out=y.clone()).nan_to_num(7), result.nan_to_num(7))


def test_logit_refuses_an_eps_out_of_range():
    for dtype in (cygrad.bool, cygrad.uint8, cygrad.int64, cygrad.float32):
        x = cygrad.tensor([0, 1], dtype=dtype)
        assert cygrad.logit(x, 0.25).tolist() == pytest.approx([-math.log(3), math.log(3)])
        assert cygrad.logit(x, 0.75).tolist() == pytest.approx([math.log(3), -math.log(3)])     # as PyTorch
        with pytest.raises(RuntimeError, match=r"logit.*without overflow \(got 1e\+39\)"):
            cygrad.logit(x, 1e39)
    assert cygrad.logit(cygrad.tensor([0.0], dtype=cygrad.float64), 1e39).isnan().all()


def test_gradient_refuses_unsigned_integers():
    assert cygrad.gradient(cygrad.tensor([3, 1]))[0].tolist() == [-2, -2]
    with pytest.raises(RuntimeError, match=r"gradient: expected a signed dtype.*got cygrad\.uint8"):
        cygrad.gradient(cygrad.tensor([3, 1], dtype=cygrad.uint8))


@pytest.mark.parametrize(("call", "argument"), [
    (lambda x: x.expand(2**63), "'size'"), (lambda x: x.topk(2**64), "'k'"), (lambda x: x.roll(-2**70), "'shifts'"),
    (lambda x: x.reshape(2, 2**63), "'shape'"), (lambda x: x.sum(2**63), "'dim'")])
def test_sizes_beyond_64_bits_name_operation_argument_and_value(call, argument):
    with pytest.raises(OverflowError, match=rf"^\w+: argument {argument} does not fit 64 bits .*\d{{19}}.*smaller one"):
        call(cygrad.ones(2))


def test_numbers_beyond_64_bits_may_be_floats():
    with pytest.raises(OverflowError, match=r"argument 'other' does not fit 64 bits .*Use a float"):
        cygrad.ones(2).fmod(2**70)
    assert cygrad.ones(2).fmod(2.0**70).tolist() == [1, 1]


def test_resizing_beyond_64_bits_names_the_operation():
    x = cygrad.ones(2)
    with pytest.raises(RuntimeError, match=r"resize_: too many elements .*\(4611686018427387904, 4\)"):
        x.resize_(2**62, 4)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("call", [
    lambda x: cygrad.norm(x, 1j), lambda x: x.dist(x, 1j), lambda x: F.normalize(x, 1j),
    lambda x: F.pairwise_distance(x, x, 1j), lambda x: F.layer_norm(x, (3,), eps=1j),
    lambda x: cygrad.linalg.pinv(x, rcond=1j), lambda x: cygrad.linalg.matrix_rank(x, 1j),
    lambda x: cygrad.var(x, 1, correction=1j), lambda x: cygrad.std_mean(x, correction=1j),
    lambda x: cygrad.renorm(x, 1j, 0, 1), lambda x: cygrad.renorm(x, 2, 0, 1j)])
def test_orders_and_tolerances_are_real_not_the_real_part_of_a_complex_number(call):
    with pytest.raises((TypeError, RuntimeError), match=r"^[\w.]+: .*(must be (a real number|a number|real))"):
        call(cygrad.ones(3, 3))


@pytest.mark.parametrize("arguments", [(math.nan, 0, 1), (2, 0, math.nan), (2, 1.5, 1), (2, cygrad.tensor(0.5), 1)])
def test_renorm_refuses_nan_and_fractions_of_dimensions(arguments):
    with pytest.raises((TypeError, RuntimeError), match=r"^renorm: "):
        cygrad.renorm(cygrad.ones(2, 2), *arguments)
