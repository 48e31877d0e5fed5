"""Mistakes that type checkers must find, each line marked by a comment."""

import cygrad

x = cygrad.randn(4, 3)
y = x + "text"  # wrong
x.shape.append(3)  # wrong
x.no_such_method()  # wrong
x.grad.sum()  # wrong
x.requires_grad = "yes"  # wrong
cygrad.no_such_function(x)  # wrong
cygrad.cat(x, dimension=0)  # wrong
