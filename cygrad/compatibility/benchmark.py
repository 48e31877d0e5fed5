"""``utils.benchmark``: timing of statements, and comparison of results."""

import gc
import statistics
import sys
import timeit

import cygrad

__all__ = ["Compare", "Measurement", "Timer", "select_unit", "trim_sigfig"]

UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
LEAST = 1e-4               # target seconds of a round


def select_unit(t):
    """Return the unit for a time in seconds: its name and length."""
    return next(unit for unit in reversed(UNITS) if t >= unit[1] or unit is UNITS[0])


def trim_sigfig(x, n):
    """Round a number to significant digits."""
    return float(f"{x:.{max(n, 1) - 1}e}") if x else 0.0


class Measurement:
    """
    The times of a statement.

    Attributes
    ----------
    number_per_run : int
        How often it was run in each round.
    raw_times : list of float
        Seconds of each round.
    times : list of float
        Seconds of one run, on average in each round.
    mean, median, iqr : float
        Of these.
    """

    def __init__(self, number_per_run, raw_times, task_spec=None, metadata=None):
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = (
            number_per_run, list(raw_times), task_spec or {}, metadata)

    times = property(lambda self: [time / self.number_per_run for time in self.raw_times], doc="Of one run.")
    mean = property(lambda self: statistics.fmean(self.times), doc="Seconds.")
    median = property(lambda self: statistics.median(self.times), doc="Seconds.")
    significant_figures = 3

    @property
    def iqr(self):
        """Interquartile range."""
        if len(self.raw_times) < 2:
            return 0.0
        quartiles = statistics.quantiles(self.times, n=4, method="inclusive")
        return quartiles[2] - quartiles[0]

    def __getattr__(self, name):
        if name in ("stmt", "setup", "label", "sub_label", "description", "env", "num_threads"):
            return self.task_spec.get(name)
        raise AttributeError(f"Measurement has no attribute {name!r}.")

    title = property(lambda self: ": ".join(filter(None, (self.label or self.stmt, self.sub_label))), doc="Its name.")

    @staticmethod
    def merge(measurements):
        """Merge measurements of one statement."""
        found = {}
        for measurement in measurements:
            key = tuple(map(str, measurement.task_spec.values()))
            if key in found:
                found[key].raw_times += [time * found[key].number_per_run for time in measurement.times]
            else:
                found[key] = Measurement(measurement.number_per_run, measurement.raw_times, measurement.task_spec)
        return list(found.values())

    def __repr__(self):
        unit, length = select_unit(self.median)
        rounds = f"{len(self.raw_times)} rounds of {self.number_per_run} runs, {self.num_threads or 1} thread(s)"
        kind = "Median" if len(self.raw_times) > 1 else "Mean"
        return f"<Measurement of {self.title}>\n  {kind}: {self.median / length:.2f} {unit}\n  {rounds}"


class Timer:
    """
    Measure a statement.

    Parameters
    ----------
    stmt, setup : str, default "pass"
    global_setup : str, optional
        Ignored; for other languages.
    timer : callable, optional
    globals : dict, optional
        Namespace of the statement.
    label, sub_label, description, env : str, optional
        Labels of the result.
    num_threads : int, default 1
        How many threads operations may use.

    Examples
    --------
    >>> from cygrad.compatibility.benchmark import Timer
    >>> Timer("x + 1", globals={"x": cygrad.ones(3)}).timeit(10).number_per_run
    10
    """

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timeit.default_timer, globals=None, label=None,
                 sub_label=None, description=None, env=None, num_threads=1, language="python"):
        if str(language).lower().rpartition(".")[2] not in ("python", "py"):
            raise ValueError(f"Timer: only statements in Python can be measured (got {language!r}).")
        names = {"torch": sys.modules.get("torch", cygrad), "cygrad": cygrad, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._spec = {"stmt": stmt, "setup": setup, "label": label, "sub_label": sub_label,
                      "description": description, "env": env, "num_threads": num_threads}

    def _run(self, number):
        with cygrad.threads(self._spec["num_threads"]):
            return self._timer.timeit(number)

    def timeit(self, number=1_000_000):
        """Run the statement `number` times; return Measurement."""
        self._run(max(number // 100, 2))                 # warm-up
        return Measurement(number, [self._run(number)], self._spec)

    def repeat(self, repeat=5, number=1_000_000):
        """Run several rounds; return Measurement."""
        return Measurement(number, [self._run(number) for _ in range(repeat)], self._spec)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measure rounds of sufficient length, for at least a given time; return Measurement."""
        number = self._fitting(min_run_time)
        return self._rounds(number, callback, lambda times: sum(times) >= min_run_time)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Run rounds until their quartiles are close to the median; return Measurement."""
        number = self._fitting(min_run_time)

        def enough(times):
            found = Measurement(number, times)
            return sum(times) >= max_run_time or (
                len(times) > 3 and sum(times) >= min_run_time and found.iqr / found.median < threshold)

        return self._rounds(number, callback, enough)

    def _fitting(self, seconds):
        """Return the number of runs in a round of the target length."""
        number = 1
        while (time := self._run(number)) < min(LEAST, seconds / 10) or number < 1:
            number *= 2 if time <= 0 else min(10, max(2, int(LEAST / time)))
        return number

    def _rounds(self, number, callback, enough):
        times = []
        collecting = gc.isenabled()
        gc.disable()
        try:
            while not times or not enough(times):
                times.append(self._run(number))
                if callback is not None:
                    callback(number, times[-1])
        finally:
            if collecting:
                gc.enable()
        return Measurement(number, times, self._spec)


class Compare:
    """
    A table of measurements: a row for each statement, a column for each description.

    Parameters
    ----------
    results : iterable of Measurement
    """

    def __init__(self, results):
        self._results = list(results)

    def extend_results(self, results):
        """Add measurements."""
        self._results += results

    def trim_significant_figures(self):
        """Do nothing."""

    colorize = highlight_warnings = trim_significant_figures

    def __str__(self):
        merged = Measurement.merge(self._results)
        columns = list(dict.fromkeys(str(result.description or result.env or "") for result in merged))
        unit, length = select_unit(min((result.median for result in merged), default=1.0))
        lines = {}
        for result in merged:
            cells = lines.setdefault((result.label or "", result.sub_label or result.stmt, result.num_threads), {})
            cells[str(result.description or result.env or "")] = f"{result.median / length:.1f}"
        table = [["", *columns]] + [[f"{label} {name} ({threads} threads)".strip(),
                                     *(cells.get(column, "") for column in columns)]
                                    for (label, name, threads), cells in lines.items()]
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        text = [" | ".join(part.rjust(width) for part, width in zip(line, widths, strict=True)) for line in table]
        return "\n".join([*text, f"Times are in {unit}."])

    def print(self):
        """Print the table."""
        print(str(self))
