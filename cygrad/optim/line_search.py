"""
Line search for the strong Wolfe conditions.

Algorithms 3.5 and 3.6 of Nocedal and Wright, "Numerical Optimization": steps grow until an interval contains a good
step, then the interval shrinks. New steps are minima of cubic interpolations, safeguarded with the constants of M.
Schmidt's minFunc.
"""

import math
from typing import NamedTuple

__all__ = ["Point", "strong_wolfe"]

SUFFICIENT, CURVATURE = 1e-4, 0.9      # c1 and c2 of the conditions
MARGIN = 0.1                           # minimum distance of a new step from the ends, relative to the interval


class Point(NamedTuple):
    """Step along the direction, with value and slope of the function."""

    step: float
    value: float
    gradient: object                   # a flat tensor
    slope: float


def strong_wolfe(evaluate, start, step, reach, least_change, most_evaluations=25):
    """
    Find a step that satisfies the Wolfe conditions.

    Parameters
    ----------
    evaluate : callable
        step -> `Point`.
    start : Point
        The point at step 0, with a negative slope.
    step : float
        First step to try.
    reach : float
        Maximum of the direction.
    least_change : float
    most_evaluations : int, default 25

    Returns
    -------
    Point, int
        The best point, and the number of evaluations.
    """
    search = _Search(evaluate, start, most_evaluations)
    interval, found = search.bracket(step)
    if found:
        return interval[0], search.evaluations
    return search.shrink(interval, reach, least_change), search.evaluations


class _Search:
    """State of one line search."""

    def __init__(self, evaluate, start, most):
        self._evaluate = evaluate
        self.start = start
        self.most = most
        self.evaluations = 0
        self.rounds = 0

    def at(self, step):
        """Evaluate the function."""
        self.evaluations += 1
        return self._evaluate(step)

    def too_high(self, point):
        """Return whether the function does not decrease sufficiently (Armijo condition)."""
        return point.value > self.start.value + SUFFICIENT * point.step * self.start.slope

    def flat(self, point):
        """Return whether the slope is small enough (curvature condition)."""
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def bracket(self, step):
        """Return two points that bracket a good step, or one good point, and whether it is the latter."""
        before, point = self.start, self.at(step)
        while self.rounds < self.most:
            if self.too_high(point) or (self.rounds > 1 and point.value >= before.value):
                return [before, point], False
            if self.flat(point):
                return [point], True
            if point.slope >= 0:
                return [before, point], False
            farther = cubic_minimum(before, point, point.step + 0.01 * (point.step - before.step), point.step * 10)
            before, point = point, self.at(farther)
            self.rounds += 1
        return [self.start, point], False

    def shrink(self, interval, reach, least_change):
        """Shrink the interval until its lower end is good or there is no progress, and return it."""
        low, high = (0, 1) if interval[0].value <= interval[1].value else (1, 0)
        stuck = False
        while self.rounds < self.most:
            left, right = sorted(point.step for point in interval)
            if (right - left) * reach < least_change:
                break
            step = cubic_minimum(interval[0], interval[1], left, right)
            margin = MARGIN * (right - left)
            near_end = min(right - step, step - left) < margin
            if near_end and (stuck or step >= right or step <= left):
                step = right - margin if abs(step - right) < abs(step - left) else left + margin
                near_end = False
            stuck = near_end
            point = self.at(step)
            self.rounds += 1
            if self.too_high(point) or point.value >= interval[low].value:
                interval[high] = point
                low, high = (0, 1) if interval[0].value <= interval[1].value else (1, 0)
                continue
            done = self.flat(point)
            if not done and point.slope * (interval[high].step - interval[low].step) >= 0:
                interval[high] = interval[low]
            interval[low] = point
            if done:
                break
        return interval[low]


def cubic_minimum(a, b, least, most):
    """Return the minimum of the cubic through both points, clamped to the bounds; their middle if there is none."""
    secant = a.slope + b.slope - 3 * _divided(a.value - b.value, a.step - b.step)
    square = secant * secant - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    if a.step > b.step:
        a, b = b, a
    step = b.step - (b.step - a.step) * _divided(b.slope + root - secant, b.slope - a.slope + 2 * root)
    return most if step > most else step if step > least else least


def _divided(a, b):
    """Return a / b with IEEE semantics: inf or nan where b is zero."""
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
