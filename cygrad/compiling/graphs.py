"""
Results that require grad: compiled functions whose backward is called outside of them.

Tracing continues with a backward from all results that require grad to all inputs that do. The function becomes one
program and its backward another, which reads saved tensors of a node. Other backwards (of a subset of the results, or
with ``create_graph``) run through eager nodes, rebuilt over the saved tensors of the call.
"""

import cygrad
from cygrad import Tensor
from cygrad._core.compiler.assembly import assemble
from cygrad._core.compiler.lowering import lower
from cygrad._core.compiler.variant import GraphTemplate, connect, needs_nodes
from cygrad._core.engine.engine import run_backward
from cygrad._core.engine.plan import mark_unreached
from cygrad.autograd import Function

__all__ = ["Graph", "graph_reason"]


class Graph:
    """
    The graph of the results of a compiled function.

    Parameters
    ----------
    trace : Trace
        Still active, after the function has returned.
    outputs : list of Tensor
        Return value of the function.
    """

    n_from_forward: int

    def __init__(self, trace, outputs):
        tracer = trace.tracer
        self.start = len(tracer.steps)
        self.inputs = [*{id(tensor): position for position, tensor in reversed(list(enumerate(trace.tensors)))
                         if tensor.requires_grad}.values()]
        mine = [tensor for tensor in outputs if tensor._base is None and not any(
            tensor is other or (other.is_leaf and tensor is other.grad) for other in trace.tensors)]
        # Views are made from their bases in each call.
        self.differentiable = [position for position, tensor in enumerate(outputs)
                               if tensor.requires_grad and any(tensor is other for other in mine)]
        self.fresh = [position for position, tensor in enumerate(outputs) if any(tensor is other for other in mine)]
        roots = [outputs[position] for position in self.differentiable]
        if any(tensor.grad_fn is None for tensor in roots):
            tracer.abort("its result is a leaf that requires grad. Return it without requires_grad_()")
            return
        self.template = GraphTemplate(tracer, roots, [trace.tensors[position] for position in self.inputs])
        if self.template.reason is not None:
            tracer.abort(self.template.reason)
            return
        reached = self.template.reached()
        if reached != [*range(len(self.inputs))]:
            self.inputs = [self.inputs[number] for number in reached]
            self.template = GraphTemplate(tracer, roots, [trace.tensors[position] for position in self.inputs])
        self.linked = any(map(self.template.contains, roots))
        self.several = [] if trace.fast else self.template.several()
        views = [tensor for tensor in outputs if tensor.requires_grad and not tensor.is_leaf and not any(
            tensor is other for other in (*mine, *trace.tensors))]
        if not all(map(self.template.separates, views)):
            tracer.abort("it returns a view, and computes a result from it, or from its base after it")
            return
        self.backward, self.ones, self.numbers = None, [], []
        if trace.ended is not None:                # a backward inside the function has released the graph
            return
        self.ones = [cygrad.ones(root.shape, dtype=root.dtype) for root in roots]
        for one in self.ones:
            tracer.add_input(one)
        # An input may be computed from another one: its own history is not part of the function.
        gradients = run_backward("grad", roots, self.ones, True, False,
                                 [trace.tensors[position] for position in self.inputs], False, True, direct=True)
        self.numbers = [None if gradient is None else tracer.read(gradient) for gradient in gradients]

    def lower(self, trace, make_constant):
        """Lower the backward; return the numbers of the arrays that the forward must save."""
        tracer = trace.tracer
        self.from_outside, self.rewrites = [], []
        if trace.ended is not None:
            return []
        program = lower(tracer, {number for number in self.numbers if number is not None}, self.start,
                        fast=trace.fast)
        known = {tracer.number_of(tensor): position for position, tensor in reversed(list(enumerate(trace.tensors)))}
        own = {tracer.number_of(one): position for position, one in enumerate(self.ones)}
        saved = [number for number in self.template.sources if program.is_input(number)]
        outer = [*dict.fromkeys([number for number in program.outer() if number not in own] + saved)]
        self.from_outside = [known[number] for number in outer if number in known]
        from_forward = [number for number in outer if number not in known]
        order = [number for number in outer if number in known] + from_forward
        positions = {number: position for position, number in enumerate(order)}
        self.template.resolve(tracer, positions)
        positions |= {number: len(order) + position for number, position in own.items()}
        self.rewrites = program.rewrites
        self.is_row_major = all(program.arrays[number].contiguous for operation in program.operations
                                if operation.expressions() for number in operation.reads())
        self.backward, slots = assemble(program, positions)
        self.slots = [None if number is None else slots[number] for number in self.numbers]
        self.ones = []
        return from_forward

    def __call__(self, results, tensors):
        """Connect outputs to the graph; the trailing results are saved tensors."""
        count = len(results) - self.n_from_forward
        made = CompiledFunction.apply(self, results, tensors, *[tensors[position] for position in self.inputs])
        found = results[:count]
        for position, result in zip(self.fresh, made if isinstance(made, tuple) else (made,), strict=True):
            found[position] = result
        return found

    def by_rows(self, gradients):
        """
        Return gradients in row-major order, or None if the program of the backward does not give the bits of eager.

        Sums add in the order of memory, which follows the layout of the gradient. The program was traced for a
        row-major one; one that is expanded from a number has no order of its own.
        """
        rows = []
        for gradient in gradients:
            if type(gradient) is not Tensor:
                return None
            row = gradient.contiguous()
            if row is not gradient and (not self.is_row_major or any(gradient.stride())):
                return None
            rows.append(row)
        return rows

    def through_nodes(self, ctx, gradients, create_graph):
        """
        Return the gradients of a backward through rebuilt eager nodes.

        The nodes are kept, because a backward may release a part of them. With `create_graph`, they become part of
        another graph that leads to `ctx`, too, so each backward gets its own.
        """
        given = [number for number, gradient in enumerate(gradients) if gradient is not None]
        outputs, inputs = ctx.nodes or self.template.rebuild(ctx, ctx.first)
        if not create_graph:
            ctx.nodes = outputs, inputs
        found = iter(run_backward("grad", [outputs[number] for number in given],
                                  [gradients[number] for number in given], ctx.keeps, create_graph,
                                  [edge for edge in inputs if edge is not None], False, True, direct=True))
        return [None if edge is None else next(found) for edge in inputs]


class CompiledFunction(Function):
    """Node of the results of a compiled function."""

    @staticmethod
    def forward(ctx, graph, results, tensors, *inputs):
        ctx.set_materialize_grads(False)
        ctx.graph, ctx.first, ctx.nodes, ctx.separated = graph, graph.template.reserve(ctx), None, False
        count = len(results) - graph.n_from_forward
        ctx.save_for_backward(*[tensors[position] for position in graph.from_outside], *results[count:])
        fresh = [results[position] for position in graph.fresh]
        ctx.mark_non_differentiable(
            *[results[position] for position in graph.fresh if position not in graph.differentiable])
        return tuple(fresh)

    @staticmethod
    def backward(ctx, *gradients):
        graph = ctx.graph
        needed = [gradient for position, gradient in zip(graph.fresh, gradients, strict=True)
                  if position in graph.differentiable]
        if not (graph.backward is None or ctx.nodes is not None or cygrad.is_grad_enabled() or needs_nodes(ctx)):
            rows = graph.by_rows(needed)
            if rows is not None:
                return (None, None, None, *graph.backward.call([*ctx.saved_tensors, *rows], graph.slots))
        found = graph.through_nodes(ctx, needed, cygrad.is_grad_enabled())
        mark_unreached(ctx, found)
        return (None, None, None, *found)

    @staticmethod
    def _eager_edges(node, rebuild=True):
        """Return the edges of eager nodes that replace those to this node, per output; None if there are none."""
        if node.nodes is None and not rebuild:
            return None
        node.nodes = node.nodes or node.graph.template.rebuild(node, node.first)
        edges = iter(node.nodes[0])
        return [next(edges) if position in node.graph.differentiable else None for position in node.graph.fresh]

    @staticmethod
    def _separate_result(node, tensor, hooked):
        """Connect a result whose gradient is needed to its eager node, where that of later results arrives, too."""
        if not hooked:
            node.separated = True
            connect(tensor, CompiledFunction._eager_edges(node)[tensor.output_nr])
        elif node.graph.linked:
            raise RuntimeError("compile: the gradient of a result from which others are computed is not known while "
                               "its grad_fn has hooks. Register hooks on tensors instead of on grad_fn.")


def graph_reason(trace):
    """Return why the backward cannot be compiled, or None."""
    tracer, start = trace.tracer, trace.graph.start
    if any(step.kind == "draw" for step in tracer.steps[start:]):
        return "its backward draws random numbers"
    for buffer in tracer.buffers:
        if any(step >= start for step in buffer.writes) and buffer.maker < start and (
                buffer.kind != "constant" or any(step < start for step in buffer.writes)):
            return "its backward modifies in place what the function has computed"
    return None
