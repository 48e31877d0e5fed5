"""Forward mode through custom functions: their `jvp` maps tangents of the arguments to tangents of the outputs."""

from cygrad._core.arrays.dtype cimport is_differentiable
from cygrad._core.custom.function_node cimport FunctionNode
from cygrad._core.dispatch.tangents cimport any_tangent, set_tangent, tangent_of
from cygrad._core.graph.modes cimport thread_state
from cygrad._core.graph.tensor cimport Tensor, describe

from cygrad._core.creation.factories import zeros_like
from cygrad._core.dispatch.tangents import laid_out, paused


cdef int push_custom(FunctionNode node, object function, tuple arguments, object computed, object outputs,
                     tuple saved) except -1:
    cdef list tangents = [tangent_of(<Tensor>argument) if isinstance(argument, Tensor) else None
                          for argument in arguments]
    cdef tuple results = outputs if isinstance(outputs, tuple) else (outputs,)
    cdef list known
    cdef Tensor tensor, own
    if not any_tangent(tangents):
        return 0
    known = [tangent_of(<Tensor>item) if isinstance(item, Tensor) else None for item in saved or ()]
    cdef list given = _given(node, arguments, tangents)
    with paused():
        pushed = function.jvp(node, *given)
    pushed = _checked(node, pushed, results)
    for output, tangent in zip(results, pushed):
        for argument, own_tangent, handed in zip(arguments, tangents, given):
            if own_tangent is not None and tangent is not None:
                _check_memory(node, <Tensor>output, <Tensor>tangent, <Tensor>argument, <Tensor>handed)
    for output, tangent in zip(results, pushed):
        if tangent is None:
            continue
        tensor = <Tensor>output
        own = tangent_of(tensor)
        if own is None:
            set_tangent(tensor, tangent)
        else:                              # modified in place: views of the tensor have views of its tangent
            with paused():
                own.copy_(tangent)
    # A backward in this level uses the tangents of the saved tensors.
    for i, item in enumerate(saved or ()):
        for before, after in zip(computed if isinstance(computed, tuple) else (computed,), results):
            if item is before and item is not None:
                known[i] = tangent_of(<Tensor>after)
    if any_tangent(known):
        node.payload = (thread_state().dual_level, known)
    return 0


cdef int _check_memory(FunctionNode node, Tensor output, Tensor tangent, Tensor argument, Tensor given) except -1:
    """Check that the tangent of an output that shares memory with an argument shares the memory of its tangent."""
    if output is argument:
        if tangent is not given:
            raise RuntimeError(f"{node.name()}: its forward modifies an input in place, so jvp must modify the "
                               "tangent of that input in place and return it (got a new tangent).")
    elif (output.base is not None and output.base is (argument if argument.base is None else argument.base)
            and (tangent.base is None or tangent.base is not (given if given.base is None else given.base))):
        raise RuntimeError(f"{node.name()}: its forward returns a view of an input, so jvp must return a view of the "
                           "tangent of that input (got one with memory of its own). Return tangent.view_as(tangent), "
                           "or the view that forward makes.")
    return 0


cdef list _given(FunctionNode node, tuple arguments, list tangents):
    """Return the arguments of jvp: zeros for tensors without a tangent, or None without materialize_grads."""
    cdef list given = []
    for argument, tangent in zip(arguments, tangents):
        if (tangent is None and node.materialize and isinstance(argument, Tensor)
                and is_differentiable((<Tensor>argument).array.dtype)):
            with paused():
                tangent = zeros_like(argument)
        given.append(tangent)
    return given


cdef list _checked(FunctionNode node, object pushed, tuple results):
    """Check what jvp returned; -> a tangent or None per output, with its layout."""
    cdef tuple found = pushed if isinstance(pushed, tuple) else (pushed,)
    cdef list checked = []
    if len(found) != len(results):
        raise RuntimeError(f"{node.name()}: jvp returned the wrong number of tangents (got {len(found)}, expected "
                           f"{len(results)}, one for each output of forward). Return None for outputs without one.")
    for number, (output, tangent) in enumerate(zip(results, found)):
        if tangent is None:
            checked.append(None)
            continue
        if not isinstance(tangent, Tensor):
            raise TypeError(f"{node.name()}: jvp must return Tensors or None (got {type(tangent).__name__} for output "
                            f"{number}).")
        if not isinstance(output, Tensor) or not is_differentiable((<Tensor>output).array.dtype):
            raise RuntimeError(f"{node.name()}: jvp returned a tangent for output {number}, which has no derivative "
                               f"(got a {describe(<Tensor>tangent)} for a {type(output).__name__}). Return None.")
        if tangent.dtype != output.dtype or tangent.shape != output.shape:
            raise RuntimeError(f"{node.name()}: jvp must return a tangent that looks like the output (got a "
                               f"{describe(<Tensor>tangent)} for output {number}, expected a "
                               f"{describe(<Tensor>output)}).")
        with paused():
            if tangent.stride() != output.stride():
                tangent = laid_out(tangent, output)
        checked.append(tangent)
    return checked
