"""The forward-mode comparisons of `gradcheck`."""

import numpy as np

from cygrad._core.creation.creation import from_numpy
from cygrad._core.creation.factories import zeros_like
from cygrad._core.graph.tensor import Tensor
from cygrad.autograd.forward_ad import dual_level, make_dual, unpack_dual


class ForwardCheck:
    """Derivatives of one function at one point along directions of its inputs."""

    def __init__(self, check, outputs_of):
        self.check = check
        self.outputs_of = outputs_of        # indices of the compared outputs

    def along(self, number, direction):
        """
        Return the derivative of each output along a direction of one input as flat arrays; zeros if constant.
        """
        zeros = {other: np.zeros_like(self.check.inputs[other].detach().numpy()) for other in self.check.checked}
        return self.pushed({**zeros, number: direction})

    def pushed(self, directions):
        """Compute the derivative along directions of several inputs, as flat arrays."""
        tangents = self.tangents({number: from_numpy(direction) for number, direction in directions.items()})
        return [np.array(tangent.detach().numpy()).reshape(-1) for tangent in tangents]

    def tangents(self, directions):
        """Return the tangents of the outputs. func gets inputs that do not require grad."""
        inputs = [value.detach() if isinstance(value, Tensor) else value for value in self.check.inputs]
        with dual_level():
            for number, direction in directions.items():
                inputs[number] = make_dual(inputs[number], direction)
            outputs = self.outputs_of(self.check.func(*inputs))
            found = [(outputs[output], unpack_dual(outputs[output]).tangent) for output in self.check.recorded]
        return tuple(zeros_like(output) if tangent is None else tangent for output, tangent in found)

    def batches(self, rng, draw):
        """Check that results for a batch of tangents equal those for single tangents."""
        import cygrad
        from cygrad.autograd.gradcheck import GradcheckError
        for number in self.check.checked:
            directions = np.stack([draw(self.check.inputs[number], rng) for _ in range(2)])

            def pushed(direction, number=number):
                return self.tangents({number: direction})

            found = cygrad.func.vmap(pushed)(from_numpy(directions))
            expected = zip(*[self.along(number, direction) for direction in directions], strict=True)
            for output, batch, single in zip(self.check.recorded, found, expected, strict=True):
                values = np.array(batch.detach().numpy()).reshape(len(directions), -1)
                if not np.allclose(values, np.stack(single), self.check.rtol, self.check.atol, equal_nan=True):
                    raise GradcheckError(f"gradcheck: the batched tangent of output {output} along input {number} is "
                                         f"wrong (got\n{values}\nexpected\n{np.stack(single)}).")

    def undefined(self, rng, draw):
        """Check that missing tangents are treated as zeros."""
        directions = {number: draw(self.check.inputs[number], rng) for number in self.check.checked}
        nothing = {other: np.zeros_like(direction) for other, direction in directions.items()}
        if len(directions) == 1 and any(tangent.any() for tangent in self.pushed(nothing)):
            raise self.check.error(f"gradcheck: the tangent of an output is not linear in that of input "
                                   f"{self.check.checked[0]} (got nonzero values for zeros). Make jvp linear in it.")
        for number in directions if len(directions) > 1 else ():
            others = {other: direction for other, direction in directions.items() if other != number}
            # For two inputs, this equals the case above.
            for defined in ({number: directions[number]}, others)[:len(directions) - 1]:
                found = self.pushed(defined)
                for output, tangent, expected in zip(self.check.recorded, found, self.pushed({**nothing, **defined}),
                                                     strict=True):
                    if not np.allclose(tangent, expected, self.check.rtol, self.check.atol, equal_nan=True):
                        raise self.check.error(
                            f"gradcheck: the tangent of output {output} is wrong if only the inputs {list(defined)} "
                            f"have one (got\n{tangent}\nexpected, as for zeros,\n{expected}). Treat missing tangents "
                            "as zeros in jvp.")

    def jacobians(self, numerical, components):
        """Compare every entry of every Jacobian, column by column."""
        for number in self.check.checked:
            array = self.check.inputs[number].detach().numpy()
            rows = []
            for place in np.ndindex(array.shape):
                sides = []
                for unit in (1, 1j) if np.iscomplexobj(array) else (1,):
                    step = np.zeros(array.shape, array.dtype)
                    step[place] = unit
                    sides.append(self.along(number, step))
                rows.append(sides)
            for position, (output, expected) in enumerate(zip(self.check.recorded, numerical(number), strict=True)):
                is_complex = np.iscomplexobj(self.check.like[output])
                lines = []
                for sides in rows:
                    parts = [components(side[position].astype(complex) if is_complex else side[position])
                             for side in sides]
                    lines.append(parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0])
                analytical = np.array(lines).reshape(expected.shape)
                self.check.compare(number, output, analytical, expected, self.check.atol, "the jvp rule")

    def projections(self, numerical, components, rng, draw, differences):
        """Compare one random product with each Jacobian; compare all its entries if one is wrong."""
        for number in self.check.checked:
            step = draw(self.check.inputs[number], rng)
            moved = differences(number, step)
            for found, expected in zip(self.along(number, step), moved, strict=True):
                # Each entry of the Jacobian may be off by atol.
                atol = self.check.atol * max(np.abs(step).sum(), 1.0)
                if not np.allclose(found, expected, rtol=self.check.rtol, atol=atol, equal_nan=True):
                    self.jacobians(numerical, components)
                    self.check.compare(number, "of all", found[None], expected[None], atol, "the jvp rule")
