"""Random functions of many kinds of operations."""

import random

import cygrad


def numbers(*shape, seed=0):
    return cygrad.randn(*shape, generator=cygrad.Generator().manual_seed(seed))


def random_function(seed):
    """
    Products, element-wise operations, sums, views, changes in place, lists: of what was there before.

    An odd one gives gradients too. Its inputs are square matrices of one size.
    """
    choice = random.Random(seed)
    plan = [(choice.randrange(10), choice.randrange(1000), choice.randrange(1000)) for _ in range(40)]

    def function(*inputs):
        made = [*inputs]
        for kind, first, second in plan:
            x, y = made[first % len(made)], made[second % len(made)]
            if kind < 3:
                made.append(x @ y / len(x))
            elif kind == 3:
                made.append((x * y).tanh())
            elif kind == 4:
                made.append(x.t())
            elif kind == 5:
                half = len(x) // 2
                made.append(cygrad.cat([x[:half], y[:half].cos()]))
            elif kind == 6:
                made.append(x + y.sum(0) / len(y))
            elif kind == 7:
                own = x * 1.5
                part = own[:, 2:5]
                made += [own, own + y]
                part.sub_(y[:, :3])
            elif kind == 8:
                own = x + y
                before = own.sigmoid()
                own.sub_(x.sin())
                made += [own, before]
            else:
                made.append(cygrad.stack([x[0] - y[1], *y[1:].unbind()]))
        return tuple(part * 1 for part in made[-6:])

    return with_gradients(function) if seed % 2 else function


def with_gradients(function):
    """Its results, and gradients of them."""
    def both(*inputs):
        leaves = [x.detach().requires_grad_() for x in inputs]
        results = function(*leaves)
        gradients = cygrad.autograd.grad(sum(part.mean() for part in results), leaves, allow_unused=True)
        return *(part.detach() for part in results), *gradients
    return both
