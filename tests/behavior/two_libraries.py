"""Run a program in cygrad and in PyTorch, and record the results."""


class Program:
    """Context of a program: the library, and a log for hooks."""

    def __init__(self, library):
        self.lib = library
        self.graph = library.autograd.graph
        self.log = []

    def plain(self, value):
        if isinstance(value, tuple | list):
            return tuple(self.plain(entry) for entry in value)
        return value.detach().tolist() if isinstance(value, self.lib.Tensor) else value

    def note(self, name, answer=None):
        """Return a hook that logs its arguments."""
        def hook(*arguments):
            self.log.append((name, self.plain(arguments)))
            return None if answer is None else answer(*arguments)
        return hook

    def leaf(self, *values):
        return self.lib.tensor(values, requires_grad=True)

    def new(self):
        """A leaf, a multiple of it, and its square."""
        x = self.leaf(1.0, 2.0)
        y = x * 3
        return x, y, y * y

    def under_no_grad(self, function):
        with self.lib.no_grad():
            return function()

    def in_inference_mode(self, function):
        with self.lib.inference_mode():
            return function()

    def run(self, function):
        """Return the log, and the result of the program or the class of its exception."""
        try:
            result = self.plain(function(self))
        except Exception as error:
            result = type(error)
        return self.log, result
