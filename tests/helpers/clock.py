"""A clock that stands still unless a test moves it."""


class Clock:
    """Simulated seconds: every reading adds `tick`, a test adds the rest to `now`."""

    def __init__(self, now: float = 0.0, tick: float = 0.0) -> None:
        self.now, self.tick = now, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass; the past (a negative number) is no error and changes nothing."""
        self.now += max(seconds, 0.0)
