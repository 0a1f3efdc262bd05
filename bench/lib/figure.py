"""What a figure is."""
from typing import NamedTuple


class Figure(NamedTuple):
    unit: str
    goal: float | None  # at most, or at least where `least`; None where it is only reported
    meaning: str
    least: bool = False
