"""What to say of a name that does not exist."""

from __future__ import annotations

from typing import Any


def unknown(what: str, name: str, known: Any) -> str:
    """One sentence about a name that does not exist, with the names that are close to it."""
    import difflib

    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    if close:  # the best one first; others only if they are nearly as close
        ratios = [difflib.SequenceMatcher(None, name, other).ratio() for other in close]
        close = [other for other, ratio in zip(close, ratios, strict=True) if ratio > 0.7 * ratios[0]]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are: {', '.join(known) or 'none'}."
    return f"{what} {name!r}; {hint}"
