"""Interrupts and forks at random moments of training (1,000 in `make stress`) leave a usable state."""

import pytest

from tests.tools import run_program

from .conftest import TIMES

pytestmark = pytest.mark.slow

TRAINING = """
import os, random, signal, threading, time
import cygrad
cygrad.set_num_threads(2)
cygrad.manual_seed(0)
nn = cygrad.nn
model = nn.Sequential(nn.Linear(20, 50), nn.Tanh(), nn.LayerNorm(50), nn.Linear(50, 3))
optimizer = cygrad.optim.SGD(model.parameters(), lr=0.01)
x, target = cygrad.randn(64, 20), cygrad.randn(64, 3)
start = {name: value.clone() for name, value in model.state_dict().items()}
def step():
    optimizer.zero_grad()
    loss = cygrad.nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    with cygrad.no_grad():
        model(x)
def result():
    model.load_state_dict(start)
    step()
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())
expected = result()
random.seed(SEED)
"""


@pytest.mark.parametrize("seed", range(2))
def test_interrupts_at_random_moments(seed):
    assert run_program(TRAINING.replace("SEED", str(seed)) + f"""
armed = False
def interrupt(*_):
    if armed: raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
begin = time.perf_counter()
for _ in range(20): step()
length = (time.perf_counter() - begin) / 20
caught = 0
while caught < {25 * TIMES}:
    try:
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1.5 * length))
            step()
            step()
        finally:
            armed = False
    except KeyboardInterrupt:
        caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert cygrad.is_grad_enabled() and not cygrad.is_inference_mode_enabled()
    if caught % 5 == 0: assert result() == expected
assert result() == expected
print(caught)
""") == [str(25 * TIMES)]


def test_forks_at_random_moments_of_other_threads():
    assert run_program(TRAINING.replace("SEED", "3") + f"""
stop = threading.Event()
def compute():
    y = cygrad.randn(40, 40, requires_grad=True)
    f = cygrad.compile(lambda y: (y @ y).tanh().sum())
    while not stop.is_set():
        (y @ y).sin().sum().backward()
        cygrad.randn(100); y.detach().numpy(); f(y).backward()
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads: thread.start()
codes = set()
for _ in range({10 * TIMES}):
    time.sleep(random.uniform(0, 0.004))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if result() == expected else 1)
    codes.add(os.waitpid(child, 0)[1])
stop.set()
for thread in threads: thread.join()
print(codes)
""") == ["{0}"]
