"""mode="fast": merged products and sums agree with eager up to rounding."""

import threading
from functools import reduce
from operator import add

import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

import cygrad
from cygrad import nn, optim
from cygrad.compiling import explain

FUNCTIONAL = nn.functional


def assert_close(found, expected, exact):
    """No further from the same in float64 than eager may be, which adds up in another order."""
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if exact.numel() and expected.isfinite().all() and exact.abs().max() < 1e30:
        scale, eager = exact.abs().max().item(), (expected.double() - exact).abs().max().item()
        assert (found.double() - exact).abs().max().item() <= 8 * eager + 64 * cygrad.finfo(found.dtype).eps * scale


def assert_ordered(step):
    """Nothing is read in the latest recording before it is there."""
    program = step.variants[0].executable
    made = {slot for operation in program.description for slot in operation.results}
    seen = set(range(len(program.traced))) - made - {view[0] for operation in program.description
                                                   for view in operation.views}
    for operation in program.description:
        assert seen.issuperset(operation.reads) and operation.target in {*seen, -1}, explain(step)
        seen.update(operation.results, (view[0] for view in operation.views))


def rewrites(step):
    return explain(step).rewrites[0]


def compared(make, *tensors, calls=3, recordings=1):
    """
    The rewrites of a step, which `make` gives a function for; it returns tensors.

    Each of its arguments and results is compared with those of eager and of float64.
    """
    steps = [make(), cygrad.compile(make(), mode="fast"), make()]
    for turn in range(calls):
        given = [(tensor * (1 + turn / 4)).detach() if tensor.is_floating_point() else tensor for tensor in tensors]
        outcomes = []
        for number, step in enumerate(steps):
            own = [tensor.double() if number == 2 and tensor.is_floating_point() else tensor.clone()
                   for tensor in given]
            outcomes.append([*step(*own), *own])
        for expected, found, exact in zip(*outcomes, strict=True):
            assert_close(found.detach(), expected.detach(), exact.detach())
            assert found._version == expected._version and found.requires_grad == expected.requires_grad
    assert explain(steps[1]).executions == calls - recordings, explain(steps[1])
    return rewrites(steps[1])


def numbers(*shape, seed=0, scale=0.5):
    generator = cygrad.Generator().manual_seed(seed)
    return cygrad.randn(*shape, generator=generator) * scale


def gradients(loss, *leaves):
    return cygrad.autograd.grad(loss, leaves, allow_unused=True)


def recurrent(inputs, start, of_input, of_state, bias):
    state = start
    for x in inputs:
        state = (x @ of_input + state @ of_state + bias).tanh()
    return state


def network(cell, of_sequence=True, size=16, steps=20, batch=3, columns=1):
    """-> make, tensors: a network over time with its gradients."""
    def make():
        def step(*tensors):
            inputs, leaves = (tensors[0], tensors[1:]) if of_sequence else (tensors[:steps], tensors[steps:])
            start, *leaves = [leaf.detach().requires_grad_() for leaf in leaves]
            inputs = [inputs[t] for t in range(steps)] if of_sequence else inputs
            result = cell(inputs, start, *leaves)
            return result.detach(), *gradients(result.square().sum(), start, *leaves)
        return step
    inputs = numbers(steps, batch, size)
    inputs = (inputs,) if of_sequence else tuple(x.clone() for x in inputs)
    return make, (*inputs, numbers(batch, size, seed=1), numbers(size, columns * size, seed=2, scale=0.2),
                  numbers(size, columns * size, seed=3, scale=0.2), numbers(columns * size, seed=4))


def lstm(inputs, start, of_input, of_state, bias):
    hidden = cell = start
    for x in inputs:
        enter, forget, candidate, leave = (x @ of_input + hidden @ of_state + bias).chunk(4, 1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
        hidden = leave.sigmoid() * cell.tanh()
    return hidden


@pytest.mark.parametrize("of_sequence", [True, False], ids=["slices", "tensors"])
@pytest.mark.parametrize(("cell", "columns"), [(recurrent, 1), (lstm, 4)])
def test_networks_over_time(cell, columns, of_sequence):
    make, tensors = network(cell, of_sequence, columns=columns)
    found = compared(make, *tensors)
    assert len(found) == 5
    assert sum("added up" in line for line in found) == 3 and "20 products by one matrix" in " ".join(found)
    if of_sequence:                   # the first state is an input, all others are computed in place
        step = cygrad.compile(make(), mode="fast")
        for _ in range(2):
            step(*[tensor.clone() for tensor in tensors])
        assert sum("fill" in line for line in explain(step).programs[0]) == 1


def test_default_mode_joins_nothing():
    make, tensors = network(recurrent)
    step = cygrad.compile(make())
    for _ in range(3):
        for a, b in zip(make()(*tensors), step(*tensors), strict=True):
            assert cygrad.equal(a, b)
    assert rewrites(step) == [] and "in another order" not in str(explain(step))


def test_pieces_of_long_sequences(monkeypatch):
    monkeypatch.setattr("cygrad._core.compiler.product_merging.MAX_WORK", 16 * 16 * 3 * 5)
    make, tensors = network(recurrent)
    assert sum("5 products" in line for line in compared(make, *tensors)) == 16


def test_layers_of_modules():
    cygrad.manual_seed(0)
    models = [nn.ModuleList([nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 4)]) for _ in range(4)]
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    models[3].double()
    order = iter(models[1:])

    def make():
        first, middle, last = next(order)
        optimizer = optim.SGD([*first.parameters(), *middle.parameters(), *last.parameters()], lr=0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = 0
            for t in range(6):
                loss = loss + (last(middle(first(x[t]).relu()).tanh()) - y[t]).square().mean()
            loss.backward()
            optimizer.step()
            return [loss.detach(), *[parameter.grad for parameter in first.parameters()], *[
                parameter.detach() for parameter in middle.parameters()]]
        return step

    found = compared(make, numbers(6, 5, 8), numbers(6, 5, 4, seed=1), calls=25, recordings=2)
    assert sum("by one matrix" in line for line in found) == 2 + 2        # rows of four numbers are not worth it


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training(name):
    def trained(compiled, dtype):
        cygrad.manual_seed(5)
        cell = nn.RNNCell(4, 12).to(dtype)
        last = nn.Linear(12, 2).to(dtype)
        parameters = [*cell.parameters(), *last.parameters()]
        optimizer = getattr(optim, name)(parameters, lr=0.01)
        start = cygrad.zeros(3, 12, dtype=dtype)

        def step(x, y):
            optimizer.zero_grad()
            state = start
            for t in range(8):
                state = cell(x[t], state)
            loss = (last(state) - y).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        step = cygrad.compile(step, mode="fast") if compiled else step
        losses = [step(numbers(8, 3, 4, seed=turn).to(dtype), numbers(3, 2, seed=turn).to(dtype)).detach()
                  for turn in range(60)]
        if compiled:
            assert explain(step).executions >= 57 and any("added up" in line for line in rewrites(step))
        return [cygrad.stack(losses), *[parameter.detach() for parameter in parameters]]

    for found, expected, exact in zip(trained(True, cygrad.float32), trained(False, cygrad.float32),
                                      trained(False, cygrad.float64), strict=True):
        assert_close(found, expected, exact)


def test_backward_outside():
    x, *leaves = network(recurrent)[1]
    leaves = [leaf.requires_grad_() for leaf in leaves]

    def forward(x, *leaves):
        return recurrent([x[t] for t in range(20)], *leaves)
    step = cygrad.compile(forward, mode="fast")
    for _ in range(4):
        expected = gradients(forward(x, *leaves).square().sum(), *leaves)
        found = gradients(step(x, *leaves).square().sum(), *leaves)
        exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
        exact = gradients(forward(x.double(), *exact).square().sum(), *exact)
        for own in zip(found, expected, exact, strict=True):
            assert_close(*own)
    assert explain(step).executions == 3 and any("added up" in line for line in rewrites(step))


@pytest.mark.parametrize("shape", [(1, 8), (8,), (2, 8), (0, 8)])
def test_rows_of_one_matrix(shape):
    def make():
        return lambda x, w: [(x[t] @ w).sin() for t in range(4)]
    assert len(compared(make, numbers(4, *shape), numbers(8, 12))) == (0 not in shape)


def test_two_sums_share_what_is_multiplied():
    def make():
        def step(x, w, v, b):
            w, v = w.detach().requires_grad_(), v.detach().requires_grad_()
            parts = [(x[t] @ w + b).tanh() @ v + (x[t] @ w).sin() for t in range(5)]
            return [sum(parts).detach(), *gradients(sum(part.square().sum() for part in parts), w, v)]
        return step
    assert len(compared(make, numbers(5, 3, 8), numbers(8, 8), numbers(8, 8, seed=1), numbers(8, seed=2))) >= 4


def test_one_bias_for_two_products():
    def make():
        def step(x, w, b):
            return [(x[2 * t] @ w + x[2 * t + 1] @ w + b).sin() for t in range(4)]
        return step
    compared(make, numbers(8, 3, 8), numbers(8, 8), numbers(8))


def test_sums_that_leave():
    """A product on top of a slice of another one is not in memory that others have, if it leaves."""
    def make():
        return lambda x, y, w, s: [x[t] @ w + y[t] @ (s * t) for t in range(4)]
    assert len(compared(make, numbers(4, 3, 8), numbers(4, 3, 8, seed=1), numbers(8, 8), numbers(8, 8, seed=2))) == 1


def test_rows_of_which_some_need_products_of_others():
    """What was put together for one product is not used for some of the rows, of which others are made."""
    def make():
        def step(x, w, v):
            w, v = w.detach().requires_grad_(), v.detach().requires_grad_()
            a = b = x
            for _ in range(4):
                a, b = (a @ w + b @ v).tanh(), (a + b @ w).tanh()
            return gradients((a * b).sum(), w, v)
        return step
    compared(make, numbers(3, 8), numbers(8, 8), numbers(8, 8, seed=1))


def test_three_products_for_one_gradient():
    """They are not merged: concatenating their operands takes longer."""
    def make():
        def step(x, w, v, u):
            x = x.detach().requires_grad_()
            y = x.sin()
            return gradients(((y @ w).sin() * (y @ v).cos() * (y @ u)).sum(), x)
        return step
    assert compared(make, numbers(3, 8), numbers(8, 8), numbers(8, 8, seed=1), numbers(8, 8, seed=2)) == []


def test_bias_that_depends_on_products_by_the_same_matrix(monkeypatch):
    """It is added later: the products on which it depends may be one with others that need it."""
    monkeypatch.setattr("cygrad._core.compiler.product_merging.MAX_WORK", 3 * 3 * 8 * 8)  # three at a time

    def make():
        def step(x, w):
            parts = [(x[t] @ w).sin() for t in range(3)]
            first = (parts[0] @ w).tanh()
            bias = first.sum(0)
            shifted = [(x[t] @ w + bias).sin() for t in range(3, 6)]
            found = [shifted[0] @ w, parts[1] @ w, parts[2] @ w, shifted[1] @ w, shifted[2] @ w]
            return [first, *[product.tanh() for product in found]]
        return step
    compared(make, numbers(6, 3, 8), numbers(8, 8))


@pytest.mark.parametrize("changed", ["rows", "bias"])
def test_changes_of_what_the_program_made(changed):
    def make():
        def step(x, w, b):
            x, b, results = x.clone(), b.clone(), []
            for t in range(4):
                results.append((x[t] @ w + b).sin())
                (x if changed == "rows" else b).mul_(1.5)
            return results
        return step
    assert len(compared(make, numbers(4, 3, 8), numbers(8, 8), numbers(8))) == (changed == "bias")


@pytest.mark.parametrize("function", [
    lambda x, w, s: [(x[t] @ s.mul_(0.9)).sin() for t in range(4)],                   # the matrix changes
    lambda x, w, s: [((x[t] @ w).mul_(2)).sin() for t in range(4)],                   # ... or a result,
    lambda x, w, s: [x[t] @ w for t in range(4)],                                     # ... or it leaves
    lambda x, w, s: [y := x[0]] + [y := (y @ w).sin() for t in range(4)],             # each needs the one before
    lambda x, w, s: [(x[t % 2] @ (w * t)).sin() for t in range(4)],                   # other matrices
    lambda x, w, s: [*[x[t].add_(x[t - 1] @ w) for t in range(1, 4)][:0], x],   # an operand is modified
])
def test_not_joined(function):
    assert compared(lambda: function, numbers(4, 3, 8), numbers(8, 8), numbers(8, 8)) == []


def test_changes_between_that_do_not_matter():
    """A change in place of what was read before: the joined product still reads what was there."""
    def make():
        def step(x, w, s):
            results = []
            for t in range(4):
                results.append((x[t] @ w).sin())
                s.add_(results[-1].sum())
            x.mul_(2)
            w.mul_(3)
            return results
        return step
    compared(make, numbers(4, 3, 8), numbers(8, 8), numbers(3))


def test_terms_whose_factors_are_changed_before_they_are_added():
    def make():
        def step(x, g):
            total, x = 0, x.clone()
            for t in range(5):
                total = total + x[t].t() @ g[t]
                if t == 2:
                    x.mul_(2)
            return [total]
        return step
    assert not any("5 products" in line for line in compared(make, numbers(5, 3, 8), numbers(5, 3, 8, seed=1)))


def test_sums_of_products_by_sums_of_products():
    """The concatenation comes after the sum that computes its input."""
    def make():
        def step(x, g, s):
            inner = [reduce(add, [x[t].t() @ g[3 * k + t] for t in range(3)]) + s * k for k in range(3)]
            return [reduce(add, [(s * (k + 1)) @ inner[k] for k in range(3)])]
        return step
    found = compared(make, numbers(3, 3, 8), numbers(9, 3, 8, seed=1), numbers(8, 8, seed=2))
    assert len(found) == 4 and all("3 products that are added up" in line for line in found)


def test_sum_that_is_read_on_the_way():
    def make():
        def step(x, g):
            totals, total = [], 0
            for t in range(9):
                total = total + x[t].t() @ g[t]
                if t % 4 == 3:
                    totals.append(total.sin())
            return [*totals, total]
        return step
    assert sum("added up" in line for line in compared(make, numbers(9, 3, 8), numbers(9, 3, 8, seed=1))) == 2


def test_gradients_accumulate():
    dtypes = [cygrad.float64, cygrad.float32, cygrad.float32]

    def make():
        w = numbers(8, 8, seed=2).to(dtypes.pop()).requires_grad_()

        def step(x):
            for scale in (1, 2):                    # or equal work would be done once
                sum(((x[t] * scale @ w).tanh() @ w).sum() for t in range(5)).backward()
            return [w.grad.clone()]
        return step

    found = compared(make, numbers(5, 3, 8), calls=4, recordings=2)
    assert sum("added up" in line for line in found) >= 2


def test_threads_replay_at_a_time():
    make, tensors = network(lstm, columns=4)
    step = cygrad.compile(make(), mode="fast")
    for _ in range(2):
        expected = step(*[tensor.clone() for tensor in tensors])
    wrong = []

    def replay():
        for _ in range(30):
            found = step(*[tensor.clone() for tensor in tensors])
            wrong.extend(1 for a, b in zip(found, expected, strict=True) if not cygrad.equal(a, b))
    threads = [threading.Thread(target=replay) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and explain(step).executions >= 90


THREE = "v[a] @ w + v[c] @ u + v[-1] @ s"
LINES = ("x[t] @ w", "v[a] @ w", "v[a] @ u.t()", "F.linear(v[a], u, b)", "v[a] @ s", "(v[a] + v[c]).tanh()", "v[a] + b",
         "v[a] * v[c]", "v[a] + v[c]", THREE, "(v[a] @ (v[c].t() @ x[t])).tanh()",
         "cat([v[a], v[c]], 1)[:, 3:11]", "cat([v[a], v[c]])[1:4]", "stack([v[a], v[c]]).sum(0)",
         "cat(v[a].sin().chunk(2, 1), 1)", "v[a].clone().mul_(0.5)", "v[a].add_(v[c])", "v[a].sin()[1]", "s.mul_(0.9)",
         "x[t].mul_(0.9)")
BODIES = st.lists(st.tuples(st.sampled_from(LINES), st.integers(1, 4), st.integers(1, 6)), min_size=2, max_size=8)


def random_step(body, inside):
    """A loop whose body was drawn, as a function that makes the function."""
    lines = [f"v.append(broadcast({line.replace('v[a]', f'v[-{a}]').replace('v[c]', f'v[-{c}]')}))"
             for line, a, c in body]
    text = "\n        ".join(["def step(x, w, u, s, b):", *[f"    {line}" for line in (
        "w, u, b = (leaf.detach().requires_grad_() for leaf in (w, u, b))", "v = [x[0].sin() for _ in range(6)]",
        "for t in range(5):", *[f"    {line}" for line in lines],
        "total = sum(y.square().sum() for y in v[-4:])",
        "return [total.detach(), *given(total, w, u, b)]")]])

    def given(total, *leaves):
        found = gradients(total, *leaves) if inside and total.requires_grad else ()
        return [gradient for gradient in found if gradient is not None]
    space = {"cat": cygrad.cat, "stack": cygrad.stack, "F": FUNCTIONAL, "given": given, "range": range, "sum": sum,
             "broadcast": lambda y: y if y.shape == (3, 8) else y.expand(3, 8)}
    exec(text, space)
    return space["step"], text


@pytest.mark.parametrize(("fewest", "work"), [(2, 10 ** 6), (2, 500), (3, 10 ** 6)])
@settings(max_examples=80, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck),
          phases=(Phase.explicit, Phase.generate, Phase.shrink))
@example(body=[(THREE, 2, 3), (THREE, 3, 4)], inside=True)       # sums of products that others of them read
@example(body=[(THREE, 1, 1), ("v[a] @ u.t()", 1, 1)], inside=True)
@given(body=BODIES, inside=st.booleans())
def test_random_loops(monkeypatch, fewest, work, body, inside):
    for name, value in (("product_merging.MIN_GROUP", fewest), ("product_merging.MAX_WORK", work),
                        ("layout_assignment.MIN_ROWS", 8)):
        monkeypatch.setattr(f"cygrad._core.compiler.{name}", value)
    function, text = random_step(body, inside)
    given = numbers(5, 3, 8), numbers(8, 8, seed=1, scale=0.2), numbers(8, 8, seed=2, scale=0.2), numbers(
        8, 8, seed=3, scale=0.2), numbers(8, seed=4)
    step = cygrad.compile(function, mode="fast")
    for _ in range(3):
        outcomes = []
        for number, run in enumerate((step, function, function)):
            own = [(tensor.double() if number == 2 else tensor).clone() for tensor in given]
            try:
                outcomes.append([*run(*own), *own])
            except RuntimeError as error:
                outcomes.append(str(error))
            if run is step and step.variants:
                assert_ordered(step)
        if isinstance(outcomes[1], str):
            assert isinstance(outcomes[0], str), text
            continue
        for own in zip(*outcomes, strict=True):
            assert_close(*[tensor.detach() for tensor in own])
    event("joined" if explain(step).programs and rewrites(step) else "not joined")
