"""Every Python allocation of a step fails: an error, restored modes, no later crash."""

import pytest

from tests.fuzz.test_objects import run

pytest.importorskip("_testcapi")

STEPS = {
    "training": """
model = c.nn.Sequential(c.nn.Linear(5, 7), c.nn.BatchNorm1d(7), c.nn.Dropout(0.3), c.nn.Linear(7, 2))
optimizer = c.optim.AdamW(model.parameters())
def step():
    for _ in range(2):
        optimizer.zero_grad()
        model(c.randn(3, 5)).pow(2).mean().backward()
        optimizer.step()
""",
    "second order": """
def step():
    x = c.randn(4, 4, requires_grad=True)
    grad, = c.autograd.grad((x @ x).tanh().sum(), x, create_graph=True)
    grad.pow(2).sum().backward()
""",
    "recurrent": """
def step():
    c.nn.GRU(3, 4)(c.randn(5, 2, 3))[0].sum().backward()
""",
    "custom function and checkpoint": """
class Double(c.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
def step():
    x = c.randn(3, requires_grad=True)
    c.utils.checkpoint.checkpoint(lambda z: Double.apply(z).exp(), x, use_reentrant=False).sum().backward()
""",
    "forward mode": """
def step():
    c.func.jvp(lambda z: (z.exp() * z).sum(), (c.ones(3),), (c.ones(3),))
""",
    "modes": """
def step():
    x = c.ones(3, 3, requires_grad=True)
    with c.autocast("cpu"), c.threads(1):
        (x @ x).sum().backward()
    with c.autograd.graph.saved_tensors_hooks(lambda z: z, lambda z: z), c.autograd.detect_anomaly():
        (x * x).exp().sum().backward()
    with c.inference_mode(), c.device("cpu"):
        x * 2
    with c.enable_grad(), c.set_grad_enabled(False), c.no_grad():
        x * 2
""",
}


@pytest.mark.parametrize("name", STEPS)
def test_a_failing_allocation_of_an_object_leaves_the_library_usable(name):
    assert run("""
import gc, os, signal, sys, warnings
import _testcapi
import cygrad as c
warnings.simplefilter("ignore")
""" + STEPS[name] + """
def state():
    return (c.is_grad_enabled(), c.is_inference_mode_enabled(), c.is_autocast_enabled("cpu"), c.is_anomaly_enabled(),
            c.get_num_threads(), str(c.get_default_device()))
def usable():
    x = c.ones(3, 3, requires_grad=True)
    grad, = c.autograd.grad((x @ x).tanh().sum(), x, create_graph=True)
    grad.sum().backward()
    c.func.jvp(lambda z: z.exp(), (c.ones(2),), (c.ones(2),))
    return bool(x.grad.isfinite().all())
step()
wrong = []
for n in [*range(1, 150), *range(150, 1200, 11)]:
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os.close(2)
        expected = state()
        _testcapi.set_nomemory(n, n + 1)
        try:
            step()
        except BaseException:
            pass
        _testcapi.remove_mem_hooks()
        gc.collect()
        os._exit(0 if state() == expected and usable() else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        wrong.append((n, os.waitstatus_to_exitcode(status)))
print(wrong)
""").strip() == "[]"
