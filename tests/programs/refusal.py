"""Record of a raised error."""


class Refusal:
    """An error that was raised instead of giving a result."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        return f"{type(self.error).__name__}: {str(self.error)[:200]}"
