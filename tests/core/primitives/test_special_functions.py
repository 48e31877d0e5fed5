"""Special functions to a few units in the last place, compared with high-precision values."""

import numpy as np
import pytest

import cygrad

# Arguments, then the value; made with mpmath.
VALUES = {
    "digamma": [
        (1e-05, -100000.57719921567),
        (0.3, -3.502524222200133),
        (1.0, -0.5772156649015329),
        (1.4616, -3.110625123034165e-05),
        (1.47, 0.008066489011364869),
        (2.5, 0.7031566406452432),
        (9.9, 2.2411803166063815),
        (10.1, 2.262214357094148),
        (10000.0, 9.210290371142849),
        (-0.0038, 262.5744109051786),
        (-3.7, -0.8450768588704194),
        (-20.3, 5.317549924239749),
    ],
    "lgamma": [
        (1e-05, 11.512919692895826),
        (0.3, 1.0957979948180756),
        (3.7, 1.428072326665388),
        (25.5, 56.389167643719944),
        (10000.0, 82099.71749644238),
        (-3.7, -1.3797399049658245),
    ],
    "i0": [
        (0.0, 1.0),
        (0.16, 1.0064102472846912),
        (-2.5, 3.289839144050123),
        (7.9, 389.406283282158),
        (8.1, 469.5006067101215),
        (300.0, 4.475847367935052e128),
        (712.0, 2.4684110577627523e307),
    ],
    "i0e": [
        (0.0, 1.0),
        (0.16, 0.8576062413755985),
        (-2.5, 0.27004644161220276),
        (7.9, 0.14436986414104191),
        (8.1, 0.14251180948829528),
        (10000.0, 0.003989472674604732),
    ],
    "i1": [
        (1e-08, 5e-09),
        (0.16, 0.08025627321234884),
        (-2.5, -2.5167162452886984),
        (7.9, 363.8539440845084),
        (8.1, 439.48430891035844),
        (300.0, 4.468381385036955e128),
    ],
    "i1e": [
        (1e-08, 4.99999995e-09),
        (0.16, 0.06838988474347839),
        (-2.5, -0.20658464953126657),
        (7.9, 0.13489649943989376),
        (8.1, 0.13340068832583662),
        (10000.0, 0.003989273195983662),
    ],
    "modified_bessel_k0": [
        (1e-08, 18.536612259610777),
        (0.5, 0.9244190712276659),
        (1.9, 0.1288459792760475),
        (2.1, 0.10078374088996693),
        (10.0, 1.778006231616765e-05),
        (300.0, 3.7236948548891435e-132),
    ],
    "modified_bessel_k1": [
        (1e-08, 99999999.9999999),
        (0.5, 1.656441120003301),
        (1.9, 0.15966015303266762),
        (2.1, 0.12274641153350789),
        (10.0, 1.8648773453825585e-05),
        (300.0, 3.7298958583323724e-132),
    ],
    "scaled_modified_bessel_k0": [
        (1e-08, 18.536612444976903),
        (0.5, 1.5241093857739094),
        (1.9, 0.8614506167517558),
        (2.1, 0.8230171525316621),
        (10.0, 0.39163193443659866),
        (10000.0, 0.012532984717699286),
    ],
    "scaled_modified_bessel_k1": [
        (1e-08, 100000000.99999991),
        (0.5, 2.731009708211786),
        (1.9, 1.0674709298145701),
        (2.1, 1.0023680527405792),
        (10.0, 0.41076657059578875),
        (10000.0, 0.012533611351270506),
    ],
    "bessel_j0": [
        (0.0, 1.0),
        (1.0, 0.7651976865579666),
        (-5.0, -0.1775967713143383),
        (30.0, -0.08636798358104021),
    ],
    "bessel_j1": [
        (1e-08, 5e-09),
        (1.0, 0.4400505857449335),
        (-5.0, 0.32757913759146523),
        (30.0, -0.11875106261662294),
    ],
    "bessel_y0": [
        (1e-08, -11.80077387717953),
        (1.0, 0.08825696421567696),
        (5.0, -0.30851762524903376),
        (30.0, -0.11729573168666403),
    ],
    "bessel_y1": [
        (1e-08, -63661977.236758195),
        (1.0, -0.7812128213002887),
        (5.0, 0.14786314339122683),
        (30.0, 0.08442557066174723),
    ],
    "spherical_bessel_j0": [
        (0.0, 1.0),
        (1e-05, 0.9999999999833333),
        (0.001, 0.9999998333333416),
        (1.0, 0.8414709848078965),
        (-20.0, 0.045647262536381385),
    ],
    "erfcx": [
        (-25.0, 5.4335189393274735e271),
        (-3.3, 107274.43593281436),
        (-1e-07, 1.0000001128379268),
        (0.0, 1.0),
        (0.4, 0.6707877852947615),
        (3.75, 0.14558972127503855),
        (50.0, 0.011281536265323773),
        (1000000000.0, 5.641895835477563e-10),
    ],
    "erfinv": [
        (1e-12, 8.86226925452758e-13),
        (0.157, 0.14004787016050657),
        (-0.5, -0.4769362762044699),
        (0.97, 1.5344856217777179),
        (0.9999999, 3.7665625816384707),
        (-0.999999999999, -5.042031898572696),
        (1e-300, 8.86226925452758e-301),
        (-0.995, -1.984872612615532),
        (0.9951, 1.9894699171301946),
        (-0.9999999999999999, -5.8635847487551676),
    ],
    "ndtri": [
        (1e-300, -37.0470962993612),
        (1e-20, -9.262340089798407),
        (0.001, -3.0902323061678136),
        (0.1176, -1.1870700266533565),
        (0.49, -0.025068908258711057),
        (0.75, 0.6744897501960817),
        (0.999999, 4.753424308817087),
    ],
    "log_ndtr": [
        (-10000.0, -50000010.12927891),
        (-40.0, -804.6084420137538),
        (-1.1, -1.997558846986297),
        (-0.9, -1.6924928065613383),
        (0.0, -0.6931471805599453),
        (3.0, -0.0013508099647481938),
        (8.0, -6.220960574271786e-16),
    ],
    "ndtr": [
        (-30.0, 4.906713927148187e-198),
        (-1.0, 0.15865525393145705),
        (0.5, 0.6914624612740131),
        (3.0, 0.9986501019683699),
        (-37.0, 5.725571222524577e-300),
        (-12.25, 8.399796063633417e-35),
        (-0.1, 0.460172162722971),
        (0.3, 0.6179114221889527),
        (1.7, 0.955434537241457),
        (6.0, 0.9999999990134123),
    ],
    "zeta": [
        (1.001, 0.5, 1001.9648639703559),
        (2.0, 1.0, 1.6449340668482264),
        (3.7, 100.0, 1.4944991048084825e-06),
        (30.0, 0.2, 9.31322574615477e20),
        (2.0, -3.4, 10.656530053957542),
        (3.0, -3.4, -11.105796384304483),
    ],
    "polygamma": [
        (1, 0.01, 10001.621213528313),
        (1, 30.0, 0.033895060357739946),
        (2, -4.4856, 2.7732144788021724),
        (3, 1.5, 1.4090910340024372),
        (8, 0.7, -999512.830457095),
    ],
    "igamma": [
        (0.01, 0.3, 0.990927603578235),
        (0.5, 0.1, 0.345279153981423),
        (2.0, 1.0, 0.26424111765711533),
        (30.0, 25.0, 0.18210391597745512),
        (1000.0, 1100.0, 0.99894067674607),
        (3.0, 0.001, 1.6654171665278076e-10),
        (1000000.0, 995000.0, 2.749580359270071e-07),
    ],
    "igammac": [
        (0.01, 0.3, 0.009072396421765093),
        (0.5, 20.0, 2.539628589470865e-10),
        (2.0, 1.0, 0.7357588823428847),
        (30.0, 25.0, 0.8178960840225449),
        (1000.0, 1100.0, 0.0010593232539299773),
    ],
}
# Units in the last place that are allowed; more where the function amplifies the rounding of its argument.
ULPS = {
    "bessel_y0": 16,
    "bessel_j0": 16,
    "bessel_j1": 16,
    "igamma": 400,
    "igammac": 400,
    "log_ndtr": 64,
    "polygamma": 16,
    "zeta": 16,
}


def function(name):
    return getattr(cygrad.special, {"lgamma": "gammaln", "igamma": "gammainc", "igammac": "gammaincc"}.get(name, name))


def call(name, arguments, dtype):
    tensors = [cygrad.tensor(value, dtype=dtype) for value in arguments]
    return function(name)(int(arguments[0]), tensors[1]) if name == "polygamma" else function(name)(*tensors)


@pytest.mark.parametrize("name", VALUES)
def test_values_in_double_precision(name):
    for *arguments, expected in VALUES[name]:
        found = call(name, arguments, cygrad.float64).item()
        assert abs(found - expected) <= ULPS.get(name, 8) * np.spacing(abs(expected)), (arguments, found, expected)


@pytest.mark.parametrize("name", VALUES)
def test_values_in_single_precision_are_those_of_the_rounded_arguments(name):
    for *arguments, _ in VALUES[name]:
        rounded = [float(np.float32(value)) for value in arguments]
        found = call(name, rounded, cygrad.float32).item()
        exact = call(name, rounded, cygrad.float64).item()
        if 1e-37 < abs(exact) < 1e38:
            np.testing.assert_allclose(found, exact, rtol=3e-6 if name in ("ndtr", "log_ndtr") else 3e-7)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("digamma", (0.0,), -INF),
        ("digamma", (-0.0,), INF),
        ("digamma", (-2.0,), NAN),
        ("digamma", (INF,), INF),
        ("digamma", (-INF,), NAN),
        ("i0", (INF,), INF),
        ("i0e", (INF,), 0.0),
        ("i1", (-INF,), -INF),
        ("i1e", (-INF,), -0.0),
        ("modified_bessel_k0", (0.0,), INF),
        ("modified_bessel_k0", (-1.0,), NAN),
        ("modified_bessel_k0", (INF,), 0.0),
        ("modified_bessel_k1", (0.0,), INF),
        ("scaled_modified_bessel_k1", (INF,), 0.0),
        ("bessel_j0", (INF,), 0.0),
        ("bessel_y0", (0.0,), -INF),
        ("bessel_y1", (-1.0,), NAN),
        ("spherical_bessel_j0", (INF,), 0.0),
        ("erfcx", (-30.0,), INF),
        ("erfcx", (INF,), 0.0),
        ("erfinv", (1.0,), INF),
        ("erfinv", (-1.0,), -INF),
        ("erfinv", (1.1,), NAN),
        ("ndtri", (0.0,), -INF),
        ("ndtri", (1.0,), INF),
        ("ndtri", (-0.1,), NAN),
        ("log_ndtr", (-INF,), -INF),
        ("log_ndtr", (INF,), -0.0),
        ("zeta", (1.0, 2.0), INF),
        ("zeta", (0.5, 2.0), NAN),
        ("zeta", (2.0, -1.0), INF),
        ("zeta", (2.5, -0.5), NAN),
        ("zeta", (2.0, INF), 0.0),
        ("zeta", (1e300, 0.5), INF),
        ("zeta", (1e300, 2.0), 0.0),
        ("zeta", (2.0, -1e15), INF),
        ("polygamma", (1, 0.0), INF),
        ("polygamma", (200, 1.0), -INF),
        ("igamma", (0.0, 1.0), 1.0),
        ("igamma", (1.0, 0.0), 0.0),
        ("igamma", (0.0, 0.0), NAN),
        ("igamma", (-1.0, 1.0), NAN),
        ("igamma", (1.0, -1.0), NAN),
        ("igamma", (INF, 1.0), 0.0),
        ("igamma", (1.0, INF), 1.0),
        ("igamma", (INF, INF), NAN),
        ("igammac", (1.0, INF), 0.0),
        ("igammac", (1.0, 0.0), 1.0),
    ],
)
def test_borders_of_domains(name, arguments, expected):
    np.testing.assert_equal(call(name, arguments, cygrad.float64).item(), expected)
    if all(isinstance(value, float) for value in arguments):
        for position in range(len(arguments)):
            with_nan = [NAN if k == position else value for k, value in enumerate(arguments)]
            assert np.isnan(call(name, with_nan, cygrad.float64).item())


def test_incomplete_gamma_functions_add_up_to_one():
    a = cygrad.logspace(-3, 9, 60, dtype=cygrad.float64)
    for factor in (0.5, 0.999, 1.0, 1.001, 3.0):
        total = cygrad.igamma(a, a * factor) + cygrad.igammac(a, a * factor)
        np.testing.assert_allclose(total.numpy(), 1, rtol=1e-14)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_first_argument_of_incomplete_gamma_functions_has_no_derivative(name):
    a = cygrad.tensor([1.0], requires_grad=True)
    result = getattr(cygrad, name)(a, cygrad.tensor([1.0]))
    with pytest.raises(NotImplementedError, match="derivative"):
        result.backward()
    with cygrad.no_grad():
        getattr(cygrad, name)(a, cygrad.tensor([1.0]))


def test_special_names_lead_to_the_same_functions():
    assert cygrad.special.psi is cygrad.digamma
    assert cygrad.special.expit is cygrad.sigmoid
    assert set(cygrad.special.__all__) <= set(vars(cygrad.special))


# Zeros, poles and borders of domains, to which neighbors are added.
POINTS = {
    "digamma": (1.4616321449683622, -0.504083008264455, -1.573498473162391, -1, -2, -3),
    "lgamma": (1, 2, -2.457024738220801, -2.747682646727412, -1, -2, -3),
    "polygamma1": (-1, -2, -0.5),
    "polygamma2": (-1, -0.5),
    "polygamma3": (-1, -2),
    "polygamma4": (-1, -0.5),
    "bessel_j0": (2.404825557695773, -5.520078110286311, 8.653727912911013),
    "bessel_j1": (3.8317059702075125, 7.015586669815619),
    "bessel_y0": (0.8935769662791675, 3.957678419314858),
    "bessel_y1": (2.197141326031017, 5.429681040794135),
    "spherical_bessel_j0": (np.pi, -2 * np.pi),
    "airy_ai": (-2.338107410459767, -4.08794944413097),
    "ndtri": (0, 0.5, 0.9375, 1),
    "erfcx": (0, -9.3),
    "i0": (), "i0e": (), "i1": (0,), "i1e": (0,),
    "modified_bessel_k0": (0,), "modified_bessel_k1": (0,), "scaled_modified_bessel_k0": (2,),
    "scaled_modified_bessel_k1": (2,),
}


def single(name, x):
    return cygrad.polygamma(int(name[-1]), x) if name.startswith("polygamma") else function(name)(x)


def arguments_of(name):
    rng = np.random.default_rng(3)
    points = np.array([*POINTS[name], 0, 1, 2.0**-12, 256], dtype=np.float32)
    steps = np.arange(-40, 41)
    near = np.nextafter(points[:, None], np.where(steps < 0, -np.inf, np.inf).astype(np.float32))
    near = (points[:, None] + (near - points[:, None]) * np.abs(steps)).ravel()
    drawn = rng.standard_normal(3000) * 10.0 ** rng.integers(-6, 4, 3000)
    extremes = [0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan]
    return np.concatenate([near, drawn, rng.random(500), extremes]).astype(np.float32)


@pytest.mark.parametrize("name", POINTS)
def test_single_precision_is_double_precision_rounded(name):
    x = arguments_of(name)
    with np.errstate(over="ignore"):
        exact = single(name, cygrad.tensor(x.astype(np.float64))).numpy()
        expected = exact.astype(np.float32)
    found = single(name, cygrad.tensor(x)).numpy()
    far = ~((np.abs(exact) < 3.4e38) & (expected != 0))
    np.testing.assert_array_equal(found[far], expected[far])
    np.testing.assert_array_equal(np.signbit(found)[expected == 0], np.signbit(expected)[expected == 0])
    ulps = np.abs(found[~far].astype(np.float64) - exact[~far]) / np.spacing(np.abs(expected[~far])).astype(np.float64)
    assert ulps.max() < 0.56, x[~far][ulps.argmax()]


@pytest.mark.parametrize("name", ["lgamma", "bessel_j0", "polygamma1"])
def test_bits_depend_neither_on_neighbors_nor_on_threads_nor_on_strides(name):
    x = np.tile(arguments_of(name), 40)
    whole = single(name, cygrad.tensor(x)).numpy()
    reverse = single(name, cygrad.tensor(x)[::3]).numpy()
    np.testing.assert_array_equal(whole[::3], reverse)
    alone = [single(name, cygrad.tensor(value)).item() for value in x[:600]]
    np.testing.assert_array_equal(whole[:600], np.float32(alone))
    threads = cygrad.get_num_threads()
    try:
        cygrad.set_num_threads(1)
        np.testing.assert_array_equal(single(name, cygrad.tensor(x)).numpy(), whole)
    finally:
        cygrad.set_num_threads(threads)


POLYNOMIALS = [name for name in cygrad.special.__all__ if "_polynomial_" in name]


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_neighbors_are_those_of_elements_alone(name, dtype):
    rng = np.random.default_rng(0)
    x = cygrad.tensor(np.concatenate([rng.uniform(-1.5, 1.5, 150), [0.0, -0.0, 1, -1, 1e30, np.inf, -np.inf, np.nan]]))
    x = x.to(dtype)
    degrees = cygrad.tensor(rng.choice([-2, -0.5, 0, 1, 2.5, 3, 7, 8, 12], len(x)), dtype=dtype)
    for n in (degrees, degrees.sort()[0], cygrad.full_like(x, 3), cygrad.full_like(x, 9)):
        together = function(name)(x, n).numpy()
        alone = [function(name)(a, b).item() for a, b in zip(x, n, strict=True)]
        np.testing.assert_array_equal(together, np.array(alone, dtype=together.dtype))


@pytest.mark.parametrize(("kind", "first"), [("t", (1, 0)), ("u", (2, 0)), ("v", (2, -1)), ("w", (2, 1))])
def test_chebyshev_polynomials_satisfy_their_recurrence_across_formulas(kind, first):
    x = cygrad.linspace(-1.2, 1.2, 241, dtype=cygrad.float64)
    call = function("chebyshev_polynomial_" + kind)
    before, last = np.ones(241), first[0] * x.numpy() + first[1]
    for n in range(2, 12):
        before, last = last, 2 * x.numpy() * last - before
        np.testing.assert_allclose(call(x, float(n)).numpy(), last, rtol=1e-13, atol=1e-12)


def test_polynomials_of_infinite_and_undefined_arguments():
    x = cygrad.tensor([-INF, INF, NAN])
    np.testing.assert_equal(function("chebyshev_polynomial_t")(x, 2.0).tolist(), [INF, INF, NAN])
    np.testing.assert_equal(function("chebyshev_polynomial_t")(x, 3.0).tolist(), [-INF, INF, NAN])
    np.testing.assert_equal(function("hermite_polynomial_h")(x, 0.0).tolist(), [1.0, 1.0, NAN])
    np.testing.assert_equal(function("legendre_polynomial_p")(x, -1.0).tolist(), [0.0, 0.0, 0.0])
    np.testing.assert_equal(function("laguerre_polynomial_l")(x, NAN).tolist(), [NAN, NAN, NAN])
