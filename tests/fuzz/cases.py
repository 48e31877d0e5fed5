"""
Generate cases: a few lines of Python with invalid calls.

Case n is the same in every run, so its number is all that is needed to see it again.
"""

import random
import re

import cygrad
from tests.fuzz import attacks, subjects
from tests.fuzz.words import (
    AFTER,
    DTYPES,
    FUNCTIONS,
    INDICES,
    LAYERS,
    METHODS,
    NUMBERS,
    ODD,
    OF_AUTOGRAD,
    OF_LAYERS,
    OPTIMIZERS,
    PROPERTIES,
    SIZES,
    STATES,
    SUFFIXES,
)
from tests.operator_cases import ROWS


def signatures():
    """Name of a function -> the types of its arguments, with the names of those that have a default."""
    found = {}
    for name, row in ROWS.items():
        arguments = re.findall(r"([\w\[\]|?]+) (\w+)(=)?", row["call"].partition("(")[2])
        found[name] = [(kind, argument if default else None) for kind, argument, default in arguments]
        for alias in row.get("alias", ()):
            found[alias] = found[name]
    return found


SIGNATURES = signatures()
INTERNAL = [name for name in ROWS if not hasattr(cygrad, name)]


class Case:
    """The lines of one case, chosen by a generator of random numbers.

    Parameters
    ----------
    number : int
        Which case.

    Attributes
    ----------
    lines : list of str
    called : str
        The name that the message of an error must mention.
    """

    def __init__(self, number):
        self.random = random.Random(f"cygrad {number}")
        self.called = ""
        self.lines = self.random.choices(KINDS, WEIGHTS)[0](self)

    def of(self, things):
        """One of them."""
        return self.random.choice(things)

    def chance(self, probability):
        """True so often."""
        return self.random.random() < probability

    def shape(self):
        """A small shape."""
        return tuple(self.random.choices((0, 1, 2, 3, 4), (1, 3, 5, 5, 1), k=self.of((0, 1, 1, 2, 2, 2, 3, 4))))

    def tensor(self):
        """A tensor of any dtype, layout and state."""
        shape = self.shape()
        text = f"t.ones({shape}, dtype=t.{self.of(DTYPES)})"
        kind = self.random.randrange(17)
        if kind < 4:
            text = f"leaf{shape}" if shape else "leaf()"
        elif kind == 4:
            text = f"(leaf{shape if shape else '()'} * 2)"
        elif kind == 5:
            text = f"t.randn({shape}, dtype=t.{self.of(DTYPES[6:])})"
        elif kind == 6:
            strides = tuple(self.of((0, 1, 2, 3)) for _ in shape)
            text = f"t.arange(24., dtype=t.{self.of(DTYPES[1:])}).as_strided({shape}, {strides}, 1)"
        elif kind == 7:
            text = f"t.tensor({[self.of(NUMBERS[:16]) for _ in range(3)]})".replace("'", "")
        elif kind == 8:
            text = self.of(STATES)
        elif kind == 9:
            text = f"leaf({', '.join(map(str, shape))}){self.of(subjects.FORMS)}"
        if self.chance(0.25):
            text += self.of(SUFFIXES)
        return text

    def argument(self, kind="any"):
        """An argument, mostly of that kind."""
        if self.chance(0.15):
            kind = "any"
        if kind in ("any", ""):
            kind = self.of(("Tensor", "Tensor", "number", "int", "int[]", "odd", "odd", "dtype", "Tensor[]"))
        if kind.endswith("?") and self.chance(0.3):
            return "None"
        kind = kind.rstrip("?")
        if kind == "Tensor|number":
            kind = self.of(("Tensor", "Tensor", "number"))
        return {
            "Tensor": self.tensor,
            "number": lambda: self.of(NUMBERS),
            "float": lambda: self.of(NUMBERS),
            "int": lambda: self.of(SIZES if self.chance(0.4) else SIZES[:8]),
            "bool": lambda: self.of(("True", "False", "1", "None")),
            "dtype": lambda: self.of([f"t.{name}" for name in DTYPES] + ["None", "float", "np.float64", "'float32'"]),
            "str": lambda: self.of(
                ("'mean'", "'sum'", "'none'", "'x'", "'constant'", "'reflect'", "'replicate'", "None")
            ),
            "int[]": self.integers,
            "Tensor[]": self.tensors,
            "Tensor?[]": self.tensors,
        }.get(kind, lambda: self.of(ODD).replace("K", str(self.random.randrange(18))))()

    def integers(self):
        """A sequence of integers."""
        entries = [
            self.of(SIZES if self.chance(0.15) else SIZES[:7])
            for _ in range(self.of((0, 1, 1, 2, 2, 3, 4, 70) if self.chance(0.2) else (1, 1, 2, 2, 3)))
        ]
        return self.of(("({},)", "[{}]")).format(", ".join(entries)) if entries else self.of(("()", "[]"))

    def tensors(self):
        """A list of tensors, some of which may be none."""
        return (
            "["
            + ", ".join(
                self.of(("None", "1")) if self.chance(0.08) else self.tensor() for _ in range(self.of((0, 1, 2, 2, 3)))
            )
            + "]"
        )

    def arguments(self, name, skip=0):
        """Return the arguments of a call as text."""
        kinds = SIGNATURES.get(name.rstrip("_") if name not in SIGNATURES else name)
        if kinds is None or self.chance(0.1):
            kinds = [("any", None)] * self.of((0, 1, 1, 2, 2, 3, 4))
            kinds = kinds if skip else [("Tensor", None), *kinds[1:]]
        given = []
        for kind, keyword in kinds[skip:]:
            if keyword is None:
                given.append(self.argument(kind))
            elif self.chance(0.4):
                given.append(f"{keyword}={self.argument(kind)}")
        if self.chance(0.02):
            given.append("nonsense=1")
        return ", ".join(given)

    def out(self, text):
        """The same, perhaps with a place for the result."""
        return f"{text}{', ' if text else ''}out={self.argument('Tensor')}" if self.chance(0.12) else text

    # ---- kinds of cases

    def function(self):
        """A function of the package."""
        self.called = self.of(FUNCTIONS)
        return [f"y = t.{self.called}({self.out(self.arguments(self.called))})", *self.after()]

    def row(self):
        """Call an internal operator or a derivative with arguments that it never gets otherwise."""
        self.called = self.of(INTERNAL)
        return [f"y = t.operators.operators.{self.called}({self.arguments(self.called)})", *self.after()]

    def method(self):
        """A method of tensors, the in-place ones and those of Python's protocols among them."""
        self.called = self.of(METHODS)
        if self.called == "__setitem__":
            return self.indexing()
        return [f"y = ({self.tensor()}).{self.called}({self.arguments(self.called, 1)})", *self.after()]

    def after(self):
        """Return lines that use a result."""
        if self.chance(0.4):
            return []
        return [self.of(AFTER)]

    def property(self):
        """A property that is read, set or deleted."""
        self.called = self.of(PROPERTIES)
        return [
            "x = " + self.tensor(),
            self.of(
                (
                    f"x.{self.called} = {self.argument()}",
                    f"x.{self.called} = {self.tensor()}",
                    f"y = x.{self.called}",
                    f"del x.{self.called}",
                )
            ),
        ]

    def index(self):
        """Return a key as text."""
        entries = [self.of(INDICES) for _ in range(self.of((1, 1, 1, 2, 2, 3, 5)))]
        return ", ".join(entries)

    def indexing(self):
        """Item access, assignment and deletion."""
        self.called = "index"
        return [
            "x = " + self.tensor(),
            self.of(
                (
                    f"y = x[{self.index()}]",
                    f"x[{self.index()}] = {self.argument(self.of(('Tensor', 'number')))}",
                    f"x[{self.index()}] += {self.argument('number')}",
                    f"del x[{self.index()}]",
                    f"y = x[{self.index()}]; y.sum().backward(); y.mul_(1)",
                )
            ),
        ]

    def autograd(self):
        """The functions of autograd."""
        self.called = self.of(OF_AUTOGRAD)
        function = self.of(("lambda x: x * 2", "lambda x: x.sum()", "lambda *x: 3", "lambda x: None", "t.exp", "3"))
        first = self.of((self.tensor(), self.tensors(), self.argument()))
        second = self.of((self.tensor(), self.tensors(), self.argument()))
        if self.called.startswith(("functional", "gradc", "gradg")):
            options = self.of(
                ("", "", ", strict=True", ", create_graph=True", ", vectorize=True", f", {self.argument()}")
            )
            return [f"t.autograd.{self.called}({function}, {first}{options})"]
        if self.called == "graph.saved_tensors_hooks":
            return [
                f"x = {self.tensor()}",
                f"with t.autograd.graph.saved_tensors_hooks(lambda v: {self.argument()}, lambda v: {self.argument()}):"
                "\n    y = (x * x).sin()",
                "y.sum().backward()",
            ]
        options = self.of(
            (
                "",
                "",
                ", retain_graph=True",
                ", create_graph=True",
                ", allow_unused=True",
                ", is_grads_batched=True",
                ", materialize_grads=True",
                f", {self.argument()}",
                f", inputs={self.tensors()}",
                f", grad_outputs={second}",
            )
        )
        return [f"y = {first}", f"t.autograd.{self.called}({self.of(('y', f'y, {second}', '[y], [y]'))}{options})"]

    def hooks(self):
        """Return lines with invalid hooks."""
        self.called = "hook"
        register = self.of(
            ("register_hook", "register_post_accumulate_grad_hook", "grad_fn.register_hook", "grad_fn.register_prehook")
        )
        action = self.of(
            (
                f"lambda *g: {self.argument()}",
                self.argument(),
                "lambda *g: x.sum().backward()",
                "lambda *g: h.remove()",
                "lambda *g: g[0].zero_()",
                "lambda: 1",
                "lambda *g: x.register_hook(print)",
                "lambda *g: 1 / 0",
            )
        )
        return [
            f"x = {self.tensor()}",
            f"h = x.{register}({action})",
            self.of(("(x * 2).sum().backward()", "x.sum().backward()")),
            self.of(("h.remove(); h.remove()", "copy.copy(h)", "pickle.dumps(h)", "x.sum().backward()")),
        ]

    def custom(self):
        """Return lines with custom functions that return invalid results."""
        self.called = "Made"
        forward = self.of(
            (
                "x",
                "x * 2",
                "x.view(-1)",
                "(x, x)",
                "None",
                "3",
                "x.detach()",
                "x.mul_(2)",
                "[x * 1]",
                self.tensor(),
                self.argument(),
            )
        )
        notes = self.of(
            (
                "",
                "",
                "ctx.save_for_backward(x)",
                "ctx.mark_dirty(x)",
                "ctx.mark_non_differentiable(x)",
                "ctx.set_materialize_grads(None)",
                f"ctx.save_for_backward({self.argument()})",
                f"ctx.mark_dirty({self.argument()})",
            )
        )
        backward = self.of(
            ("g[0]", "g", "None", "(None, None)", "g[0] * 2", "ctx.saved_tensors", self.tensor(), self.argument())
        )
        notes = f"{notes}, " if notes else ""
        return [
            f"M = function_that(lambda ctx, x: ({notes}{forward},)[-1], lambda ctx, *g: {backward})",
            f"y = M.apply({self.argument('Tensor')})",
            self.of(
                (
                    "y.sum().backward()",
                    "y.sum().backward(create_graph=True)",
                    "y.mul_(2)",
                    "y[0].sum().backward()",
                    "M()",
                    "getattr(y.grad_fn, 'apply', y.grad_fn)(1)",
                    "getattr(y.grad_fn, 'saved_tensors', ())",
                )
            ),
        ]

    def interchange(self):
        """NumPy, DLPack, the buffer protocol, pickling and files."""
        self.called = ""
        x, other, k = self.tensor(), self.argument(), self.random.randrange(18)
        return [
            self.of(
                (
                    f"np.asarray({x})",
                    f"memoryview({x}).tolist()",
                    f"bytes({x})",
                    f"t.from_numpy({other})",
                    f"t.from_numpy(structured()[{k}])",
                    f"t.tensor(structured()[{k}])",
                    f"t.as_tensor(structured()[{k}])",
                    f"t.asarray({other}, dtype={self.argument('dtype')})",
                    f"t.from_dlpack({x})",
                    f"t.from_dlpack({other})",
                    f"np.from_dlpack({x})",
                    f"({x}).__dlpack__({other})",
                    f"({x}).__dlpack__(stream={other})",
                    f"pickle.loads(pickle.dumps({x}))",
                    f"copy.deepcopy([{x}, {x}])",
                    f"t.load(damaged({self.random.randrange(10**6)}))",
                    f"t.save({other}, io.BytesIO())",
                    f"t.load({other})",
                    f"t.save({x}, {other})" if "'x'" not in other and "b'x'" not in other else f"t.save({x}, None)",
                    f"t.from_numpy(np.asarray(({x}).detach())).zero_()",
                    f"np.add(({x}).detach(), {other})",
                    f"({x}).numpy(force={other})",
                    f"t.tensor({other}, dtype={self.argument('dtype')}, requires_grad={self.argument('bool')})",
                    f"np.sin({x})",
                    f"t.set_rng_state({other})",
                    f"t.manual_seed({self.argument('int')})",
                    f"t.Generator().set_state({other})",
                    f"({x}).__array__({self.argument('dtype')})",
                    f"list(zip({x}, {x}))",
                    f"'{{:{self.of(('.2f', 'd', 'x', '', '>8'))}}}'.format({x})",
                )
            )
        ]

    def layer(self):
        """Layers, their functions, and optimizers."""
        kind = self.random.randrange(3)
        if kind == 0:
            self.called = self.of(OF_LAYERS)
            return [f"y = F.{self.called}({self.arguments(self.called)})", *self.after()]
        if kind == 1:
            self.called = self.of(LAYERS)
            text = ", ".join(
                self.argument(self.of(("int", "int", "number", "any"))) for _ in range(self.of((0, 0, 1, 2, 3)))
            )
            return [
                f"m = t.nn.{self.called}({text})",
                f"y = m({self.tensor()})",
                self.of(
                    (
                        "y.sum().backward()",
                        f"m.load_state_dict({self.argument()})",
                        f"m.to({self.argument('dtype')})",
                        "repr(m)",
                        f"m.register_full_backward_hook(lambda *g: {self.argument()}); m(leaf(2, 3)).sum().backward()",
                        f"m.weight = {self.argument()}",
                        f"m.requires_grad_({self.argument('bool')})",
                        "copy.deepcopy(m)",
                    )
                ),
            ]
        self.called = self.of(OPTIMIZERS)
        options = ", ".join(
            f"'{name}': {self.argument('number')}"
            for name in self.random.sample(
                ("lr", "momentum", "weight_decay", "betas", "eps", "nesterov", "dampening", "amsgrad"),
                self.of((0, 1, 1, 2)),
            )
        )
        return [
            self.of(
                (
                    f"optimizer('{self.called}', {{{options}}})",
                    f"t.optim.{self.called}({self.argument()}, lr={self.argument('number')})",
                    f"o = t.optim.{self.called}([leaf(2)], lr=0.1); o.load_state_dict({self.argument()})",
                    f"o = t.optim.{self.called}([leaf(2)], lr=0.1); o.step({self.argument()})",
                    f"o = t.optim.{self.called}([leaf(2)], lr=0.1); o.add_param_group({self.argument()})",
                )
            )
        ]


KINDS = (
    Case.function,
    Case.method,
    Case.property,
    Case.indexing,
    Case.autograd,
    Case.hooks,
    Case.custom,
    Case.interchange,
    Case.layer,
    Case.row,
    *attacks.KINDS,
    *subjects.KINDS,
)
WEIGHTS = (30, 30, 3, 10, 8, 5, 5, 8, 6, 12, *attacks.WEIGHTS, *subjects.WEIGHTS)
