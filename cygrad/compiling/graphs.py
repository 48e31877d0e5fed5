"""
Results with a history: a recorded function whose backward runs outside of it.

Tracing goes on with a backward from all results that require grad to all tensors from outside that do. What the
function itself did becomes one program, the backward another; what the second needs of the first is saved in a node.
Any other backward (of some results, with ``create_graph``) runs through the nodes of eager, rebuilt over what the call
has saved.
"""

import cygrad
from cygrad._core.compiler.graph_template import GraphTemplate, is_changed
from cygrad._core.compiler.lowering import Lowering
from cygrad.autograd import Function

__all__ = ["Graph", "graph_reason"]


class Graph:
    """
    The history of the results of a compiled function.

    Parameters
    ----------
    recording : Recording
        Still tracing, right after the function has returned.
    outputs : list of Tensor
        What it has returned.
    """

    def __init__(self, recording, outputs):
        recorder = recording.recorder
        self.start = len(recorder.steps)
        self.inputs = [*{id(tensor): place for place, tensor in reversed(list(enumerate(recording.tensors)))
                         if tensor.requires_grad}.values()]
        mine = [tensor for tensor in outputs if not any(tensor is other for other in recording.tensors)]
        self.differentiable = [place for place, tensor in enumerate(outputs)
                               if tensor.requires_grad and any(tensor is other for other in mine)]
        self.fresh = [place for place, tensor in enumerate(outputs) if any(tensor is other for other in mine)]
        roots = [outputs[place] for place in self.differentiable]
        if any(tensor.grad_fn is None for tensor in roots):
            recorder.lose("its result is a leaf that requires grad. Return it without requires_grad_()")
            return
        self.template = GraphTemplate(recorder, roots, [recording.tensors[place] for place in self.inputs])
        if self.template.reason is not None:
            recorder.lose(self.template.reason)
            return
        self.ones = [cygrad.ones(root.shape, dtype=root.dtype) for root in roots]
        for one in self.ones:
            recorder.foresee(one)
        gradients = cygrad.autograd.grad(roots, [recording.tensors[place] for place in self.inputs], self.ones,
                                         retain_graph=True, allow_unused=True)
        self.numbers = [None if gradient is None else recorder.read(gradient) for gradient in gradients]

    def lower(self, recording, make_constant):
        """The program of the backward; -> numbers of the arrays that the forward has to give it."""
        recorder = recording.recorder
        lowering = Lowering(recorder, {number for number in self.numbers if number is not None}, self.start,
                            fast=recording.fast)
        known = {recorder.number_of(tensor): place for place, tensor in reversed(list(enumerate(recording.tensors)))}
        own = {recorder.number_of(one): place for place, one in enumerate(self.ones)}
        saved = [number for number in self.template.sources if lowering.is_given(number)]
        outer = [*dict.fromkeys([number for number in lowering.outer() if number not in own] + saved)]
        self.from_outside = [known[number] for number in outer if number in known]
        from_forward = [number for number in outer if number not in known]
        order = [number for number in outer if number in known] + from_forward
        places = {number: place for place, number in enumerate(order)}
        self.template.resolve(recorder, places)
        places |= {number: len(order) + place for number, place in own.items()}
        self.rewrites = lowering.rewrites
        self.backward, slots = lowering.program(places, make_constant)
        self.slots = [None if number is None else slots[number] for number in self.numbers]
        self.ones = None
        return from_forward

    def __call__(self, results, tensors):
        """Results with a history: the first ones are for the user, the others are saved."""
        count = len(results) - self.n_from_forward
        made = CompiledFunction.apply(self, results, tensors, *[tensors[place] for place in self.inputs])
        found = results[:count]
        for place, result in zip(self.fresh, made if isinstance(made, tuple) else (made,), strict=True):
            found[place] = result
        return found

    def through_nodes(self, ctx, gradients, create_graph):
        """The gradients by a backward through nodes like those of eager."""
        given = [number for number, gradient in enumerate(gradients) if gradient is not None]
        outputs, inputs = self.template.rebuild(ctx, given, ctx.first)
        found = iter(cygrad.autograd.grad(
            outputs, [edge for edge in inputs if edge is not None], [gradients[number] for number in given],
            create_graph=create_graph, allow_unused=True))
        return [None if edge is None else next(found) for edge in inputs]


class CompiledFunction(Function):
    """The node of the results of a compiled function."""

    @staticmethod
    def forward(ctx, graph, results, tensors, *inputs):
        ctx.set_materialize_grads(False)
        ctx.graph, ctx.first = graph, graph.template.reserve()
        count = len(results) - graph.n_from_forward
        ctx.save_for_backward(*[tensors[place] for place in graph.from_outside], *results[count:])
        fresh = [results[place] for place in graph.fresh]
        ctx.mark_non_differentiable(*[results[place] for place in graph.fresh if place not in graph.differentiable])
        return tuple(fresh)

    @staticmethod
    def backward(ctx, *gradients):
        graph = ctx.graph
        gradients = [gradient for place, gradient in zip(graph.fresh, gradients, strict=True)
                     if place in graph.differentiable]
        if cygrad.is_grad_enabled() or any(gradient is None for gradient in gradients) or is_changed(ctx):
            found = graph.through_nodes(ctx, gradients, cygrad.is_grad_enabled())
        else:
            found = graph.backward.call([*ctx.saved_tensors, *[gradient.contiguous() for gradient in gradients]],
                                        graph.slots)
        return (None, None, None, *found)


def graph_reason(recording):
    """Why the backward of this call is not that of the next one; None if it is."""
    recorder, start = recording.recorder, recording.graph.start
    if any(step.kind == "draw" for step in recorder.steps[start:]):
        return "its backward draws random numbers"
    for buffer in recorder.buffers:
        if any(step >= start for step in buffer.writes) and buffer.maker < start and (
                buffer.kind != "constant" or any(step < start for step in buffer.writes)):
            return "its backward modifies in place what the function has computed"
    return None
