"""The distribution of missing cells given the observed ones, for mixtures: exact conditionals.

Given the component, blocks are independent, and each block computes its own conditionals. So the
distribution of a missing cell is a mixture over the components, weighted by
``p(component | the other cells)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..families import family_of


class Given(NamedTuple):
    """The posterior of the components of some rows, and the conditionals of each block."""

    shares: np.ndarray  # (n, M) p(component | cells, classes)
    blocks: tuple[Any, ...]  # what the components of each block predict for missing cells

    def drawn(self, rng: Any) -> tuple[np.ndarray, ...]:
        """Draw every missing cell; return the rows by block, and the component of each row."""
        steps = np.cumsum(self.shares, axis=1)
        u = rng.random_sample(len(steps))[:, None] * steps[:, -1:]
        codes = (u > steps[:, :-1]).sum(axis=1)
        return codes, *(block.drawn(codes, rng) for block in self.blocks)


def given(model: Any, rows: Any, log_odds: np.ndarray) -> Given:
    """Return the conditionals of rows whose classes may be partly known.

    ``log_odds``, (n or 1, K), is added to the score of each class: -inf excludes the class.
    """
    joint = np.asarray(model.joint(model.read(rows))) + log_odds[:, model.code]
    joint -= joint.max(axis=1, keepdims=True)
    shares = np.exp(joint)
    shares /= shares.sum(axis=1, keepdims=True)
    pairs = zip(model.blocks, rows.parts, strict=True)
    return Given(shares, tuple(family_of(b).given(b, part) for b, part in pairs))
