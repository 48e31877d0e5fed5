"""Methods of extension types refuse other objects, and uninitialized objects do not crash."""

import subprocess
import sys


def run(text):
    """Run in a separate process, which a failure would crash."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout


def test_methods_refuse_a_wrong_self():
    assert run("from tests.fuzz.objects import accepted\nprint(*accepted(), sep='\\n')").strip() == ""


def test_no_compiled_callable_crashes_on_wrong_arguments():
    """None, numbers, classes, bare objects and lists of them, in every position of functions, methods and classes."""
    assert run("""
from tests.fuzz.objects import callables, killed
print(len(callables()) > 500, *killed(), sep="\\n")
""").strip() == "True"


def test_objects_without_initialization():
    """Everything of every type, on what ``__new__`` gives, and on objects of a class without its ``__init__``."""
    assert run("""
import gc
from tests.fuzz.objects import EXTENSION_TYPES, attributes, bare, unbound
calls = 0
for name, owner in EXTENSION_TYPES.items():
    for derived in (False, True):
        for attribute in attributes(owner):
            try:
                made = bare(name, derived)
            except TypeError:
                continue
            for rest in range(3):
                try:
                    unbound(name, attribute)(made, *[None] * rest)
                except Exception:
                    pass
                calls += 1
            del made
gc.collect()
print(calls > 1000)
""").strip() == "True"


def test_what_is_left_at_exit_can_be_used():
    """Objects that the interpreter destroys last call the library while its modules go."""
    assert run("""
import cygrad
class Late:
    def __init__(self):
        self.x = cygrad.ones(3, requires_grad=True)
        self.y = (self.x * 2).exp().sum()
        self.mode = cygrad.no_grad()
        self.handle = self.x.register_hook(lambda grad: grad * 2)
    def __del__(self):
        for deed in (lambda: self.y.backward(), lambda: repr(self.x), lambda: self.x[1:].mul_(2), self.handle.remove,
                     lambda: self.mode.__enter__(), lambda: (self.x * 3).sum().backward(), lambda: cygrad.ones(2)):
            try:
                deed()
            except BaseException:
                pass
import sys, builtins
keep = Late()
builtins.kept = Late()
sys.modules["kept"] = Late()
cycle = [Late()]
cycle.append(cycle)
print("end")
""").strip() == "end"
