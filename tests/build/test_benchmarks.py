"""Run each benchmark once with its first parameters."""

import importlib
import inspect
import json
import math
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import cygrad

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("time_", "timeraw_", "track_", "peakmem_", "mem_")

pytestmark = [
    pytest.mark.usefixtures("keep_number_of_threads"),
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="benchmarks are only in the source tree")]


def load(name):
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"benchmarks.{name}")
    finally:
        sys.path.remove(str(ROOT))


def found():
    """Every method that asv would run."""
    for path in sorted((ROOT / "benchmarks").glob("bench_*.py")):
        for name, cls in inspect.getmembers(load(path.stem), inspect.isclass):
            for method, _ in inspect.getmembers(cls, callable):
                # benchmarks with a cache count instructions and have a separate test
                if method.startswith(KINDS) and not hasattr(cls, "setup_cache"):
                    yield pytest.param(cls, method, id=f"{path.stem}.{name}.{method}")


@pytest.mark.parametrize(("cls", "method"), list(found()))
def test_benchmark_runs(cls, method):
    arguments = [values[0] for values in cls.params]
    assert len(arguments) == len(cls.param_names)
    assert arguments[0] == "cygrad"
    benchmark = cls()
    benchmark.setup(*arguments)
    result = getattr(benchmark, method)(*arguments)
    assert not method.startswith("track_") or isinstance(result, int | float)


def test_what_is_missing_is_skipped(monkeypatch):
    workloads = load("workloads")
    with pytest.raises(NotImplementedError, match="no_such_library"):
        workloads.library("no_such_library")
    with pytest.raises(NotImplementedError, match="cores"):
        workloads.library("cygrad", 10 ** 6)
    with pytest.raises(NotImplementedError, match=r"has no nn\.NoSuchLayer"):
        workloads.needs(cygrad, "nn.Linear", "nn.NoSuchLayer")
    monkeypatch.setenv("CYGRAD_BENCH_OTHERS", "")
    with pytest.raises(NotImplementedError, match="other libraries are excluded"):
        workloads.library("torch")


def test_paired_measures():
    medians = load("compare").paired({"cygrad": lambda: None}, rounds=1)
    assert medians["cygrad"] < 0.01
    assert any("OpenBLAS" in line for line in load("measuring").circumstances(["cygrad"], 1))


def test_what_is_prepared_is_not_measured():
    calls = []
    measuring = load("measuring")
    measuring.seconds_per_call(lambda: calls.append("run"), 2, lambda: calls.append("prepare"))
    assert calls == ["prepare", "run", "prepare", "run"]


@pytest.mark.parametrize("tells", [True, False])
def test_steps_in_undisturbed_moments(tells, monkeypatch):
    if not tells:
        monkeypatch.setattr(Path, "exists", lambda path: False)
    found = load("measuring").undisturbed_steps([lambda: time.sleep(1e-5)] * 2, 0.3, 10)
    assert math.isnan(found) or 100 < found < 2e5


def test_players_take_turns(monkeypatch):
    """Run in separate processes; a library that lacks a feature is skipped."""
    turns, scenarios = load("turns"), load("scenarios").SCENARIOS
    monkeypatch.chdir(ROOT)
    samples = turns.rounds_of(["cygrad", "no_such_library"], scenarios["op-no-grad"], 1, 2)
    assert list(samples) == ["cygrad"]
    assert len(samples["cygrad"]) == 2
    assert min(samples["cygrad"]) > 0
    assert turns.measured("import_memory", "cygrad", 1) > 2 ** 20


def test_ratios_are_those_of_the_turns():
    values, ratios = load("turns").summary({"cygrad": [1.0, 2.0, 4.0], "torch": [3.0, 4.0, 20.0]})
    assert values == {"cygrad": 2.0, "torch": 4.0}
    assert ratios == {"torch": 3.0}


# Gradients of small scenarios, in a separate process, because jax pins it to some cores.
GRADIENTS = """
import json, sys
import numpy as np
from benchmarks import networks, workloads

def gradients(lib, loss, parameters):
    if workloads.is_functional(lib):
        return lib.compile(lib.value_and_gradients(loss, len(parameters)))(*parameters)[1]
    loss(*parameters).backward()
    return [parameter.grad.numpy() for parameter in parameters]

workloads.gradient_step = networks.gradient_step = gradients
lib, sizes = workloads.library(sys.argv[1]), (12, 8, 5)
found = {
    "elements": workloads.elementwise_chain(lib, 100),
    "rnn": networks.tanh_network(lib, 5, 8, 3),
    "lstm": networks.lstm(lib, 5, 8, 3),
    "block": networks.transformer_block(lib, 64, 6, 2),
    "perceptron": gradients(lib, networks.perceptron_loss(lib, sizes, 4), networks.perceptron_weights(lib, sizes)),
    "hessian": [networks.full_hessian(lib, 6)()],
}
print(json.dumps({key: [np.asarray(part).tolist() for part in parts] for key, parts in found.items()}))
"""


def gradients_of(name):
    answer = subprocess.run([sys.executable, "-c", GRADIENTS, name], check=True, stdout=subprocess.PIPE,
                            env=load("measuring").surroundings())
    return json.loads(answer.stdout)


@pytest.mark.parametrize("name", ["torch", "jax", "jax.jit", "autograd"])
def test_libraries_compute_the_same(name):
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip("not installed")
    ours, theirs = gradients_of("cygrad"), gradients_of(name)
    assert set(ours) == set(theirs)
    for key, parts in ours.items():
        for own, other in zip(parts, theirs[key], strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5 * np.abs(other).max(), err_msg=key)


# ---- figures and their tables

LINES = {
    "mlp-small": {"1": {"values": {"cygrad": 400.0, "torch": 300.0}, "ratios": {"torch": 0.75}}},
    "op-backward": {"1": {"values": {"cygrad": 400.0, "torch": 2000.0, "jax": 1e5}, "ratios": {"torch": 5, "jax": 250}},
                    "2": {"values": {"cygrad": 400.0, "torch": 8000.0}, "ratios": {"torch": 20.0}}},
    "node-memory": {"1": {"values": {"cygrad": 287.0}, "ratios": {}}},
}


def test_the_table_marks_where_another_library_takes_less():
    rows = load("figures").table(LINES).splitlines()
    assert rows[0] == "|  |  | cygrad, 1 | cygrad, 2 | PyTorch, 1 | PyTorch, 2 | jax, 1 | jax, 2 |"
    assert [row.count("|") for row in rows] == [9] * len(rows)
    assert rows[2].endswith("| µs | 400 |  | **0.75** |  |  |  |")
    assert rows[3].endswith("| ns | 400 | 400 | 5 | 20 | 250 |  |")
    assert rows[4].endswith("| bytes | 287 |  |  |  |  |  |")


def test_the_table_of_the_readme_has_ratios_in_one_direction():
    rows = load("figures").short_table(LINES).splitlines()
    assert rows[2].endswith("| ns | 400 | 2,000 | 5 |  |")
    assert rows[3].endswith("| µs | 400 | 300 | **0.75** |  |")


def test_the_table_without_other_libraries():
    alone = {"node-memory": LINES["node-memory"]}
    assert load("figures").table(alone).splitlines()[0] == "|  |  | cygrad, 1 |"


def test_the_plot_has_every_ratio(tmp_path):
    pytest.importorskip("matplotlib")
    points = {line.get_label(): line.get_xdata()[0] for line in load("plot").drawing(LINES).axes[0].lines}
    assert points["PyTorch, 1 thread: 5"] == pytest.approx(5, abs=0.5)
    assert {"PyTorch, 2 threads: 20", "jax, 1 thread: 250"} <= set(points)
    load("plot").draw(tmp_path / "new" / "ratios.svg")
    picture = ElementTree.parse(tmp_path / "new" / "ratios.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"


def test_documents_show_the_committed_figures():
    figures = load("figures")
    for path, text in figures.documents().items():
        assert text == path.read_text(), f"{path.name}: run python -m benchmarks.figures"
    assert set(figures.read()["lines"]) <= set(load("scenarios").SCENARIOS)


def test_keys_of_the_suite_are_scenarios():
    scenarios = load("scenarios").SCENARIOS
    suites = [param.values[0] for param in found() if "scenario" in param.values[0].param_names]
    used = {key for cls in suites for key in cls.params[1]}
    assert used
    assert not used - set(scenarios)


# ---- limits

def test_limits_are_measured(monkeypatch):
    """Every kernel of the table runs, on small tensors, and counts for what its operands and results weigh."""
    limits = load("limits")
    for name, value in {"ROWS": 8, "COLUMNS": 4, "SIZES": (3,), "ROUNDS": 1, "REGISTER_ROUNDS": 10}.items():
        monkeypatch.setattr(limits, name, value)
    found = limits.measured(lambda title: True, {"cygrad": cygrad})
    assert [title for title in found if title in limits.KERNELS] == list(limits.KERNELS)
    assert all(line["limit"] > 0 and line["shares"]["cygrad"] > 0 for line in found.values())
    rows = load("figures").limits_table(found).splitlines()
    assert len(rows) == 2 + len(found)
    assert rows[-1].endswith("GFLOP/s |")


def test_shares_are_of_the_limit():
    seen = []
    limit, of = load("limits").shares(lambda lib: lambda: seen.append(lib), 100.0, lambda: 50.0, {"cygrad": "us"})
    assert limit == 50
    assert of["cygrad"] > 0
    assert set(seen) == {"us"}


def test_registers_hold_twice_as_many_singles():
    from cygrad._core.testing import probes
    assert probes.multiply_adds(False, 7) == 2 * probes.multiply_adds(True, 7) > 0


# ---- instructions

def test_instructions_are_differences():
    counts = load("instructions")
    title, around = "`x * y`, `no_grad`", counts.NOTHING
    found = {(title, counts.COUNT): 1000 + 90 * counts.COUNT, (title, 2 * counts.COUNT): 1000 + 180 * counts.COUNT,
             (around, counts.COUNT): 500 + 7 * counts.COUNT, (around, 2 * counts.COUNT): 500 + 14 * counts.COUNT}
    assert counts.per_operation(found) == {title: 83}


@pytest.mark.skipif(not shutil.which("valgrind"), reason="counting needs valgrind")
def test_instructions_are_repeatable(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    counts = load("instructions")
    wanted = {counts.NOTHING, "`x * y`, `no_grad`", *counts.GRAPH_TITLES.values()}
    first, second = (counts.per_operation(counts.counted("cygrad", wanted, tmp_path)) for _ in range(2))
    assert set(first) == wanted - {counts.NOTHING}
    assert all(abs(second[title] - cost) <= 0.01 * cost for title, cost in first.items())
    assert min(first.values()) > 50


# ---- operators

def test_operators_are_compared_in_both_modes_and_shown_with_the_slowest_first():
    pytest.importorskip("torch")
    figures, operators = load("figures"), load("operators")
    wanted = {"sin", "roll", "randperm"}
    found = operators.speeds(wanted.__contains__, (100,), 1)
    assert set(found) == wanted
    assert found["sin"][0] > 0
    assert found["sin"][3] > 0
    assert math.isnan(found["randperm"][3])
    ratios = {"fast": [2.0] * 6, "slow": [3.0, 0.5, 3.0, math.nan, 2.0, 2.0]}
    assert figures.slowest(ratios, 1) == ["slow"]
    assert "| `slow` | 3 | **0.5** | 3 |  | 2 | 2 |" in figures.operators_table(ratios)
    assert len(operators.drawing(figures.ratios_of(figures.read()["operators"])).axes) == 5
