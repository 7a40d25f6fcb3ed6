"""Regression: p(y, x) = sum_c p(c) p(y | x, c) prod_b p(x_b | c), with y linear in x within c.

The last block is that of the answer. The scores are two inferences side by side: with the answer
free, and with the answer clamped. The weights of a loss have the same two parts. Blocks of x take
part in both inferences, so they move by the sum of both weights: clamped minus free. The block of
the answer moves by the clamped weights. Missing cells are summed out, in p(y | x, c) too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from .._arrays import namespace_of
from .._kinds import savable
from ..families import Block, Family, family_of, multiply
from ..families.planes import PLANES, Features, Hidden
from ..priors import Planes
from .mixture import Mixture, Moves

_MOST_SPENT = 0.6  # of the rows of a component: the most degrees of freedom that its plane may use
_LEAST = 1e-6  # of the variance of y: the least variance of a component
_FAINT = 1e-150
_STRENGTHS = 2.0 ** np.arange(20.0)  # pseudo-rows that pull the plane of all rows
_FURTHER = 0.1  # of the range of a feature: how far planes continue beyond it


class Answered(NamedTuple):
    """The distribution of the answers of a batch in each component."""

    means: list[Any]  # (n, M) of each answer, in units
    variances: list[Any]
    hidden: Hidden


@savable
@dataclass(frozen=True)
class Regression(Mixture):
    """A mixture over rows and answers; there is one class, and `first` gives its components."""

    @property
    def family(self) -> Family:
        return multiply(*(family_of(block).known for block in self.blocks[:-1]))

    @property
    def answer(self) -> Block:
        """Return the block of the answer."""
        return self.blocks[-1]

    @property
    def classes_alone(self) -> Mixture:
        """Return the mixture of x alone."""
        return Mixture(self.classes, self.blocks[:-1], self.first)

    def read(self, rows: Any) -> tuple:
        *parts, y = rows.parts
        pairs = zip(self.blocks, parts, strict=False)
        batch = tuple(family_of(block).read(block, part) for block, part in pairs)
        cells, seen = PLANES.units(self.answer, y)
        values, missing = features_of(self.blocks, batch)
        fixed, xp = self.answer.fixed, namespace_of(values)
        values = xp.clip(values, fixed["low"], fixed["high"])
        return *batch, Features(values, missing, cells, seen)

    def answered(self, features: Features) -> Answered:
        """Return the distribution of the answers of rows in each component."""
        hidden = hidden_of(self.blocks[:-1])
        means, variances = PLANES.moments_of(self.answer, features, hidden)
        return Answered(means, variances, hidden)

    def scores(self, batch: tuple) -> tuple[Any, Any]:
        """Return ``ln p(c, x)`` and ``ln p(c, x, y)``, (n, 2M), and the components' answers."""
        free = self.classes_alone.joint(batch[:-1])
        found = self.answered(batch[-1])
        log = PLANES.log_density(self.answer, batch[-1], found.means, found.variances)
        return namespace_of(free).concat([free, free + log], axis=1), found

    def normals(self, batch: tuple) -> tuple[Any, Any, Any]:
        """Return shares of the components of each row, (n, M), means and variances, (q, n, M)."""
        joint = self.classes_alone.joint(batch[:-1])
        xp, fixed = namespace_of(joint), self.answer.fixed
        shares = xp.exp(joint - xp.max(joint, axis=1, keepdims=True))
        shares = shares / xp.sum(shares, axis=1, keepdims=True)
        found, unit = self.answered(batch[-1]), fixed["scale"][:, None, None]
        means = fixed["shift"][:, None, None] + unit * xp.stack(found.means)
        variances = xp.stack([xp.broadcast_to(v, shares.shape) for v in found.variances])
        return shares, means, unit**2 * variances

    def spread(self, weights: Any, posterior: Any) -> Any:
        """Return the weights of components: gained with y known, minus lost with y unknown."""
        M = weights.shape[1] // 2
        return weights[:, :M] + weights[:, M:]

    def leverage(self, batch: tuple, posterior: Any, weights: Any, moves: Moves) -> Any:
        found = self.classes_alone.leverage(
            batch[:-1], None, self.spread(weights, posterior), moves
        )
        return None if found is None else namespace_of(found).concat([found, found], axis=1)

    def expected(self, batch, posterior, weights, least=0.0):
        own, found = self.classes_alone.expected(
            batch[:-1], None, self.spread(weights, posterior), least
        )
        clamped = weights[:, weights.shape[1] // 2 :]
        moments = posterior.means, posterior.variances
        slope, to_hidden = PLANES.gradient(
            self.answer, batch[-1], posterior.hidden, moments, clamped
        )
        if batch[-1].missing is not None:
            found, at = list(found), 0
            for b, block in enumerate(self.blocks[:-1]):
                size = int(family_of(block).hidden(block)[0].sum())
                own_slopes = (each[at : at + size, :] for each in to_hidden)
                found[b] = family_of(block).with_answers(block, found[b], *own_slopes)
                at += size
        return own, [*found, slope]


def features_of(blocks: tuple, batch: tuple) -> tuple[Any, Any]:
    """Return the features of all blocks, (n, P), the first being 1, and missing columns, (n, g)."""
    pairs = [
        family_of(block).features(block, part) for block, part in zip(blocks, batch, strict=False)
    ]
    some = pairs[0][0]
    xp, n = namespace_of(some), some.shape[0]
    one = xp.ones((n, 1), dtype=some.dtype, device=some.device)
    values = xp.concat([one, *(values for values, _ in pairs)], axis=1)
    if all(missing is None for _, missing in pairs):
        return values, None
    gone = [
        xp.zeros((n, block.mass.shape[0]), dtype=some.dtype, device=some.device)
        if missing is None
        else missing
        for block, (_, missing) in zip(blocks, pairs, strict=False)
    ]
    return values, xp.concat(gone, axis=1)


def hidden_of(blocks: tuple) -> Hidden:
    """Return what components know about features missing in a row."""
    known = [family_of(block).hidden(block) for block in blocks]
    sizes = np.concatenate([sizes for sizes, *_ in known])
    levels = np.concatenate([np.full(len(sizes), own) for sizes, own, *_ in known])
    xp = namespace_of(known[0][-1])
    mean = xp.concat([mean for *_, mean, _ in known])
    spread = xp.concat([spread for *_, spread in known])
    return Hidden(np.cumsum([1, *sizes]), levels, mean, spread)


def begin(
    mixture: Mixture, rows: Any, codes: np.ndarray, weights: np.ndarray, prior: Planes
) -> Any:
    """Start a regression at a mixture of x, with planes of rows whose components are known."""
    y = rows.parts[-1].values
    batch = mixture.read(rows._replace(parts=rows.parts[:-1]))
    values, missing = features_of(mixture.blocks, batch)
    low, high = values.min(axis=0), values.max(axis=0)
    more = _FURTHER * (high - low)
    filled = _filled(values, missing, hidden_of(mixture.blocks), codes)
    shift, scale = units_of_answers(y, weights)
    known = ~np.isnan(y)
    units = np.where(known, (y - shift) / scale, 0.0)
    (P, q), M = (filled.shape[1], y.shape[1]), int(mixture.first[-1])
    total = max(float(weights.sum()), 1e-300)
    gram = (filled * weights[:, None]).T @ filled / total
    # constant features have no effect; the level of y is almost free
    size = max(float(np.diagonal(gram)[1:].mean()) if P > 1 else 1.0, 1e-3)
    ridge = size * np.array([1e-3, *np.ones(P - 1)])
    alike, strength = _ridge(filled, units, weights[:, None] * known, ridge)
    gram += np.diag((strength - 1.0 + 1.0 / total) * ridge)
    prior = prior._replace(plane=alike, gram=gram)
    plane, rest, spent, counts = np.empty((P, q, M)), *np.empty((3, q, M))
    white = np.empty((M, P, P))
    for c in range(M):
        own = codes == c
        some, weight = filled[own], weights[own]
        white[c] = _white(some, weight, prior)
        for k in range(q):
            found = _plane(some, units[own, k], weight * known[own, k], prior, k)
            plane[:, k, c], rest[k, c], spent[k, c], counts[k, c] = found
    freedom = np.maximum((counts - spent).sum(axis=1), 1e-300)
    prior = prior._replace(variance=np.maximum(rest.sum(axis=1) / freedom, _LEAST))
    nu = prior.nu_variance
    variance = (rest + nu * prior.variance[:, None]) / (counts - spent + nu)
    fixed = {"shift": shift, "scale": scale, "low": low - more, "high": high + more}
    fixed |= {"white": white, "spent": spent}
    answer = Block(
        PLANES.name, np.ones(q), {"plane": plane, "variance": variance}, {}, fixed, prior
    )
    return Regression(mixture.classes, (*mixture.blocks, answer), mixture.first)


def _ridge(x: Any, y: Any, weights: Any, ridge: Any) -> tuple[Any, float]:
    """Return the planes of all rows, shrunk to zero, and the number of pseudo-rows that pull.

    One pseudo-row is enough, unless planes then use too many degrees of freedom, for example with
    more features than rows. Then generalised cross-validation chooses the number.
    """
    root, score, ways = 1.0 / np.sqrt(ridge), np.zeros(len(_STRENGTHS)), []
    for own, cells in zip(weights.T, y.T, strict=True):
        size, values = np.linalg.eigh((x * own[:, None]).T @ x * root[:, None] * root)
        size, total = np.maximum(size, 0.0), max(float(own.sum()), 1e-300)
        along = values.T @ (root * (x.T @ (own * cells)))
        shrunk = 1.0 / (size + _STRENGTHS[:, None])
        spent = (size * shrunk).sum(axis=1) / total
        rest = own @ cells**2 - (along**2 * shrunk * (2.0 - size * shrunk)).sum(axis=1)
        off = np.maximum(rest, _LEAST * total) / np.maximum(1.0 - spent, _LEAST) ** 2
        score += np.where(spent > _MOST_SPENT, np.inf, total * np.log(off))
        ways.append((root[:, None] * values, along, shrunk))
    best = int(np.argmin(score)) if np.isinf(score[0]) else 0
    planes = [values @ (along * shrunk[best]) for values, along, shrunk in ways]
    return np.stack(planes, axis=1), float(_STRENGTHS[best])


def _white(x: Any, weights: Any, prior: Planes) -> Any:
    """Return coordinates of planes in which each coordinate affects the answers equally."""
    moments = (x * weights[:, None]).T @ x + prior.nu_plane * prior.gram
    root = np.linalg.cholesky(moments / (weights.sum() + prior.nu_plane))
    return dtrtri(root, lower=1)[0].T


def _plane(x: Any, y: Any, weights: Any, prior: Planes, k: int) -> tuple[Any, float, float, float]:
    """Return the plane of rows, its squared error, its degrees of freedom, and the row count."""
    own = (x * weights[:, None]).T @ x
    both = own + prior.nu_plane * prior.gram
    alike = prior.plane[:, k]
    plane = alike + np.linalg.solve(both, x.T @ (weights * (y - x @ alike)))
    count = float(weights.sum())
    spent = min(float(np.trace(np.linalg.solve(both, own))), _MOST_SPENT * count)
    return plane, float(weights @ (y - x @ plane) ** 2), spent, count


def _filled(values: Any, missing: Any, hidden: Hidden, codes: np.ndarray) -> Any:
    """Return the features, with missing ones replaced by their means in the components."""
    if missing is None:
        return values
    gone = np.repeat(missing, np.diff(hidden.first), axis=1)
    filled = values.copy()
    filled[:, 1:] += gone * hidden.mean.T[codes]
    return filled


def units_of_answers(y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of answers; the deviation of constant answers is tiny."""
    seen = weights[:, None] * ~np.isnan(y)
    share = seen / np.maximum(seen.sum(axis=0), 1e-300)
    shift = (share * np.nan_to_num(y)).sum(axis=0)
    scale = np.sqrt((share * np.nan_to_num(y - shift) ** 2).sum(axis=0))
    size = np.maximum(np.abs(shift), _FAINT)
    return shift, np.where(scale <= 1e-12 * size, 1e-6 * size, scale)
