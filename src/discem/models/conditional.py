"""What a mixture says of the cells that rows lack, given those that they have: exact conditionals.

Given the component, blocks are independent, and each block answers for itself. So the distribution
of a missing cell is a mixture over the components, weighed by ``p(component | the other cells)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..families import family_of


class Given(NamedTuple):
    """Rows beside the components of a model."""

    shares: np.ndarray  # (n, M) p(component | cells, classes)
    blocks: tuple[Any, ...]  # what the components of each block say of missing cells

    def drawn(self, rng: Any) -> tuple[np.ndarray, ...]:
        """The rows, each missing cell drawn, and the component of each row; by block."""
        steps = np.cumsum(self.shares, axis=1)
        u = rng.random_sample(len(steps))[:, None] * steps[:, -1:]
        codes = (u > steps[:, :-1]).sum(axis=1)
        return codes, *(block.drawn(codes, rng) for block in self.blocks)


def given(model: Any, rows: Any, log_odds: np.ndarray) -> Given:
    """What a model says of rows of which more is known than their cells.

    ``log_odds``, (n or 1, K), adds it to the score of each class: -inf if it cannot be this one.
    """
    joint = np.asarray(model.joint(model.read(rows))) + log_odds[:, model.code]
    joint -= joint.max(axis=1, keepdims=True)
    shares = np.exp(joint)
    shares /= shares.sum(axis=1, keepdims=True)
    pairs = zip(model.blocks, rows.parts, strict=True)
    return Given(shares, tuple(family_of(b).given(b, part) for b, part in pairs))
