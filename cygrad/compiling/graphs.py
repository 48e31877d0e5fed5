"""
Results with a history: a recorded function whose backward runs outside of it.

The recording goes on with a backward from all results that require grad to all tensors from outside that do. What the
function itself did becomes one program, the backward another; what the second needs of the first is saved in a node.
"""

import contextlib

import cygrad
from cygrad._core.compiler.lowering import Lowering
from cygrad.autograd import Function
from cygrad.compiling.draws import Given

__all__ = ["Graph", "graph_draws"]


class Graph:
    """
    The history of the results of a recorded function.

    Parameters
    ----------
    recording : Recording
        Still recording, right after the function has returned.
    outputs : list of Tensor
        What it has returned.
    """

    def __init__(self, recording, outputs):
        recorder = recording.recorder
        self.function, self.rebuild = recording.function, recording.arguments
        self.start = len(recorder.steps)
        self.inputs = [*{id(tensor): place for place, tensor in reversed(list(enumerate(recording.tensors)))
                         if tensor.requires_grad}.values()]
        mine = [tensor for tensor in outputs if not any(tensor is other for other in recording.tensors)]
        self.differentiable = [place for place, tensor in enumerate(outputs)
                               if tensor.requires_grad and any(tensor is other for other in mine)]
        self.fresh = [place for place, tensor in enumerate(outputs) if any(tensor is other for other in mine)]
        self.ones = [cygrad.ones(outputs[place].shape, dtype=outputs[place].dtype) for place in self.differentiable]
        for one in self.ones:
            recorder.foresee(one)
        gradients = cygrad.autograd.grad(
            [outputs[place] for place in self.differentiable], [recording.tensors[place] for place in self.inputs],
            self.ones, retain_graph=True, allow_unused=True)
        self.numbers = [None if gradient is None else recorder.read(gradient) for gradient in gradients]
        self.changes = False

    def lower(self, recording, make_constant):
        """The program of the backward; -> numbers of the arrays that the forward has to give it."""
        recorder = recording.recorder
        lowering = Lowering(recorder, {number for number in self.numbers if number is not None}, self.start,
                            fast=recording.fast)
        known = {recorder.number_of(tensor): place for place, tensor in reversed(list(enumerate(recording.tensors)))}
        own = {recorder.number_of(one): place for place, one in enumerate(self.ones)}
        outer = [number for number in lowering.outer() if number not in own]
        self.from_outside = [known[number] for number in outer if number in known]
        from_forward = [number for number in outer if number not in known]
        order = [number for number in outer if number in known] + from_forward
        places = {number: place for place, number in enumerate(order)}
        places |= {number: len(order) + place for number, place in own.items()}
        self.n_saved = len(order)
        self.rewrites = lowering.rewrites
        self.backward, slots = lowering.program(places, make_constant)
        self.slots = [None if number is None else slots[number] for number in self.numbers]
        self.changes = any(buffer.writes and buffer.kind in ("tensor", "gradient") for buffer in recorder.buffers)
        self.ones = None
        return from_forward

    def __call__(self, results, tensors, drawn):
        """Results with a history: the first ones are for the user, the others are saved."""
        count = len(results) - self.n_from_forward
        made = CompiledFunction.apply(self, results, tensors, drawn, *[tensors[place] for place in self.inputs])
        found = results[:count]
        for place, result in zip(self.fresh, made if isinstance(made, tuple) else (made,), strict=True):
            found[place] = result
        return found

    def again(self, tensors, drawn, gradients, create_graph):
        """The gradients by running the function once more, as ever: for second derivatives, or if one is missing."""
        if self.changes:
            raise RuntimeError("compile: this backward has to run the function again, and the function changes tensors "
                               "in place (got create_graph=True, or results without gradients). Use disable=True.")
        with cygrad.enable_grad(), contextlib.nullcontext() if drawn is None else Given(drawn):
            outputs = self.rebuild(self.function, tensors)
            pairs = [(outputs[place], gradient) for place, gradient in zip(self.differentiable, gradients, strict=True)
                     if gradient is not None]
        return cygrad.autograd.grad(
            [output for output, _ in pairs], [tensors[place] for place in self.inputs],
            [gradient for _, gradient in pairs], create_graph=create_graph, allow_unused=True)


class CompiledFunction(Function):
    """The node of the results of a recorded function."""

    @staticmethod
    def forward(ctx, graph, results, tensors, drawn, *inputs):
        ctx.set_materialize_grads(False)
        ctx.graph, ctx.tensors, ctx.drawn = graph, tensors, drawn
        count = len(results) - graph.n_from_forward
        ctx.save_for_backward(*[tensors[place] for place in graph.from_outside], *results[count:])
        fresh = [results[place] for place in graph.fresh]
        ctx.mark_non_differentiable(*[results[place] for place in graph.fresh if place not in graph.differentiable])
        return tuple(fresh)

    @staticmethod
    def backward(ctx, *gradients):
        graph = ctx.graph
        saved = list(ctx.saved_tensors)
        gradients = [gradient for place, gradient in zip(graph.fresh, gradients, strict=True)
                     if place in graph.differentiable]
        if cygrad.is_grad_enabled() or any(gradient is None for gradient in gradients):
            found = graph.again(ctx.tensors, ctx.drawn, gradients, cygrad.is_grad_enabled())
        else:
            found = graph.backward.call(saved + [gradient.contiguous() for gradient in gradients], graph.slots)
        return (None, None, None, None, *found)


def graph_draws(recording):
    """Would a backward need random numbers that its forward has not kept?"""
    recorder = recording.recorder
    return recording.graph is not None and any(
        step.kind == "draw" and (
            place >= recording.graph.start or recorder.buffers[recorder.arrays[step.results[0]].buffer].writes)
        for place, step in enumerate(recorder.steps))
