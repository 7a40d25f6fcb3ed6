"""Mixtures: p(y, x) = sum_c p(y, c) prod_b p(x_b | y, c), over blocks of columns.

The component c is never observed. Its posterior within a class is exact, and distributes the weight
of the class over its components. With one component in each class this is naive Bayes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import beside, namespace_of, within
from .._checks import check_array, check_number, demand
from .._kinds import savable
from ..families import Block, Family, Step, family_of, multiply
from .classes import Classes, mean_classes

_FARTHEST = 1e300  # the largest change of a score that a step may report; above, numbers overflow


class Moves(NamedTuple):
    """The parameters of a step, see `discem.update`."""

    decay: float  # the share of all statistics that is forgotten
    pull: float  # the factor of the prior's pull
    floor: float  # the least value after the check-step
    projection: Any

    @property
    def negligible(self) -> float:
        """Weights below this are ignored: a small part of what the prior moves in a step."""
        return self.projection.negligible * self.floor


@savable
@dataclass(frozen=True)
class Mixture:
    """Naive Bayes over (class, component); the components of a class stand side by side."""

    classes: Classes  # the counts of the components
    blocks: tuple[Block, ...]
    first: np.ndarray  # (K + 1,) where the components of each class begin
    weight: float = 0.0  # of the running average so far

    def _replace(self, **parts: Any) -> Any:
        return replace(self, **parts)

    # --- what it is made of -----------------------------------------------------------------------

    @property
    def family(self) -> Family:
        """Return the family of the rows."""
        return multiply(*(family_of(block).known for block in self.blocks))

    @property
    def features(self) -> Block:
        """Return the block, if the model has only one."""
        return self.blocks[0]

    @property
    def n_classes(self) -> int:
        return len(self.first) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Return the number of components of each class."""
        return np.diff(self.first)

    @property
    def is_mixed(self) -> bool:
        """Return whether any class has more than one component."""
        return int(self.first[-1]) > self.n_classes

    @property
    def class_counts(self) -> np.ndarray:
        """Return the expected counts of the classes, (K,)."""
        return np.add.reduceat(self.classes.counts, self.first[:-1])

    @property
    def averages(self) -> bool:
        """Return whether a running average is kept."""
        return self.classes.past is not None

    @property
    def is_in_place(self) -> bool:
        """Return whether a step changes some of its arrays in place."""
        return any(block.lazy for block in self.blocks)

    @property
    def work_per_cell(self) -> float:
        """Return how many numbers each stored cell is compared with: a measure of time."""
        return float(self.first[-1])

    # --- the one update asks for these ------------------------------------------------------------

    def read(self, rows: Any) -> tuple:
        """Return the statistics of a batch of rows, by block."""
        pairs = zip(self.blocks, rows.parts, strict=True)
        return tuple(family_of(block).read(block, part) for block, part in pairs)

    def joint(self, batch: tuple) -> Any:
        """Return ``ln p(y, c, x)`` of each row and component, (n, M)."""
        shares = self.classes.shares
        a = namespace_of(shares).log(shares)[None, :]
        for b, (block, part) in enumerate(zip(self.blocks, batch, strict=True)):
            if self._counts(block):
                a = a + self.by_component(b, family_of(block).scores(block, part))
        return a

    def _counts(self, block: Block) -> bool:
        """Return whether a block takes part: blocks without columns are skipped.

        If no block has columns, all blocks take part, with the same scores for every row.
        """
        return block.has_columns or not any(each.has_columns for each in self.blocks)

    def scores(self, batch: tuple) -> tuple[Any, Any]:
        """Return ``ln p(y, x)``, (n, K), and the posterior of components within classes, (n, M).

        In memory, the rows of one component are side by side. Sums over a few components are then
        sums of long arrays.
        """
        joint = self.joint(batch)
        if not self.is_mixed:
            return joint, None
        xp, n = namespace_of(joint), joint.shape[0]
        place, there = self._places
        even = bool(there.all())
        by_class = joint.T if even else xp.take(joint.T, beside(place.ravel(), joint), axis=0)
        by_class = xp.reshape(by_class, (*place.shape, n))
        if not even:
            taken = beside(there, joint)[:, :, None]
            by_class = xp.where(taken, by_class, xp.full_like(by_class, -np.inf))
        top = xp.max(by_class, axis=1, keepdims=True)
        posterior = xp.exp(by_class - top)
        total = xp.sum(posterior, axis=1, keepdims=True)
        posterior = xp.reshape(posterior / total, (-1, n))
        if not even:
            kept = beside(np.flatnonzero(there.ravel()), joint)
            posterior = xp.take(posterior, kept, axis=0)
        return (top + xp.log(total))[:, 0, :].T, posterior.T

    def spread(self, weights: Any, posterior: Any) -> Any:
        """Distribute the weights of classes, (n, K), over their components, (n, M)."""
        if posterior is None:
            return weights
        xp = namespace_of(weights)
        return xp.take(weights.T, beside(self.code, weights), axis=0).T * posterior

    def columns_of(self, b: int) -> np.ndarray | None:
        """Return the column of block b that each component uses, (M,); None: each has its own.

        Models whose components share columns override this method, and nothing else.
        """
        return None

    def by_component(self, b: int, numbers: Any) -> Any:
        """Expand numbers of the columns of block b, (n, C), to the components, (n, M)."""
        columns = self.columns_of(b)
        if columns is None:
            return numbers
        return namespace_of(numbers).take(numbers, beside(columns, numbers), axis=1)

    def by_column(self, b: int, numbers: Any) -> Any:
        """Sum numbers of the components, (n, M), over the columns of block b, (n, C)."""
        columns = self.columns_of(b)
        if columns is None:
            return numbers
        member = columns[:, None] == np.arange(int(columns.max()) + 1)
        return numbers @ beside(member.astype(np.float64), numbers)

    def leverage(self, batch: tuple, posterior: Any, weights: Any, moves: Moves) -> Any:
        """Return how far a step of weight 1 moves the scores of a row, (n, K); None: no damping."""
        weights, step = self.spread(weights, posterior), self._step(moves)
        total = None
        for b, (block, part) in enumerate(zip(self.blocks, batch, strict=True)):
            if not self._counts(block):
                continue
            family, own = family_of(block), self.by_column(b, weights)
            tied = self.columns_of(b) is not None
            step_of = self._step(moves, b) if tied else step
            own = family.leverage(block, part, own, step_of, moves.negligible)
            if own is not None:
                xp, own = namespace_of(own), self.by_component(b, own)
                most = within(_FARTHEST, own)
                own = xp.where(own < most, own, xp.full_like(own, most))
                total = own if total is None else total + own
        if posterior is None or total is None:
            return total
        # a weight r of the class moves component c by q r, which moves a_k by q times as much
        member = self.code[:, None] == np.arange(self.n_classes)
        return (posterior**2 * total) @ beside(member.astype(np.float64), total)

    def expected(
        self, batch: tuple, posterior: Any, weights: Any, least: float = 0.0
    ) -> tuple[Any, Iterable[Any]]:
        """Return the weights of components, (n, M), and the weighted statistics of each block.

        Blocks are evaluated lazily, one after the other, as blocks of words share memory for sums.
        """
        weights = self.spread(weights, posterior)
        pairs = enumerate(zip(self.blocks, batch, strict=True))
        found = (
            family_of(block).expected(block, part, self.by_column(b, weights), least)
            for b, (block, part) in pairs
        )
        return weights, found

    def moved(self, batch: tuple, posterior: Any, weights: Any, moves: Moves) -> tuple[Any, int]:
        """Return the model after one step, and the number of factors whose step was shortened."""
        step, blocks, shortened = self._step(moves), [], 0
        weights, found = self.expected(batch, posterior, weights, moves.negligible)
        for b, (block, own) in enumerate(zip(self.blocks, found, strict=True)):
            if not self._counts(block):
                blocks.append(block)
                continue
            family, tied = family_of(block), self.columns_of(b) is not None
            block, short = family.moved(block, own, self._step(moves, b) if tied else step)
            blocks.append(block)
            shortened += short
        classes, short = self.classes.moved(namespace_of(weights).sum(weights, axis=0), step)
        return self._replace(classes=classes, blocks=tuple(blocks)), shortened + short

    def _step(self, moves: Moves, b: int | None = None) -> Step:
        """Return the step of the components, or of the columns of block b."""
        shares = self.classes.shares
        if b is not None:
            shares = self.by_column(b, shares[None, :])[0]
        strength = max(family_of(block).strength(block) for block in self.blocks)
        slowness = moves.projection.slowness(moves.pull * strength, shares)
        return Step(shares, slowness, *moves)

    @property
    def code(self) -> np.ndarray:
        """Return the class of each component."""
        return np.repeat(np.arange(self.n_classes), self.sizes)

    @property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the components of each class, (K, most), and which of these places are used."""
        place = np.arange(self.sizes.max())[None, :]
        there = place < self.sizes[:, None]
        return np.where(there, self.first[:-1, None] + place, 0), there

    # --- the state --------------------------------------------------------------------------------

    def with_average(self) -> Any:
        """Return the state with a running average that starts at the current values."""
        return self._map(lambda f, b: f.with_average(b))._replace(
            classes=self.classes.with_average(), weight=0.0
        )

    def with_past(self, past: Any, weight: float) -> Any:
        """Return the state with the given running average and its weight."""
        pairs = zip(self.blocks, past.blocks, strict=True)
        blocks = tuple(family_of(own).with_past(own, other, weight) for own, other in pairs)
        classes = self.classes._replace(past=past.classes.counts)
        return self._replace(classes=classes, blocks=blocks, weight=weight)

    def averaged_in(self, weight: float) -> Any:
        """Return the state after adding its current values to the running average."""
        total = self.weight + weight
        return self._map(lambda f, b: f.averaged_in(b, weight, total))._replace(
            classes=self.classes.averaged_in(weight, total), weight=total
        )

    def reweighed(self, weight: float) -> Any:
        """Return the state with another weight of the running average so far."""
        factor = weight / self.weight if self.weight else 0.0
        return self._map(lambda f, b: f.reweighed(b, factor))._replace(weight=weight)

    def averaged(self) -> Any:
        """Return the model at its running average, without an average of its own."""
        if not self.averages:
            return self
        return self._map(lambda f, b: f.averaged(b))._replace(
            classes=self.classes.averaged(), weight=0.0
        )

    def with_classes(self, order: np.ndarray, mass: float) -> Any:
        """Arrange the classes in `order`; -1 is a new one, at the prior's centre with `mass`.

        A new class has as many components as the largest class. They share its mass.
        """
        sizes = self.sizes
        own = [np.arange(self.first[k], self.first[k + 1]) for k in range(len(sizes))]
        own.append(np.full(sizes.max(), -1))
        columns = np.concatenate([own[k] for k in order])
        first = np.cumsum([0, *(len(own[k]) for k in order)], dtype=np.int64)
        share = mass / sizes.max()
        model = self._map(lambda f, b: f.with_components(b, columns, share))
        model = model._replace(classes=self.classes.arranged(columns, share), first=first)
        new = np.flatnonzero(columns < 0)
        return perturbed(model, new, np.random.default_rng(0)) if sizes.max() > 1 else model

    def with_features(self, n_features: Any) -> Any:
        """Add new features; blocks that cannot grow stay unchanged."""
        if len(self.blocks) == 1:
            return self._map(lambda f, b: f.with_features(b, n_features))
        grown = [
            family_of(block).with_features(block, size)
            if type(family_of(block)).with_features is not Family.with_features
            else block
            for block, size in zip(self.blocks, n_features, strict=True)
        ]
        return self._replace(blocks=tuple(grown))

    def in_precision(self, kind: Any) -> Any:
        """Return the model with its large tables in single or in double precision."""
        return self._map(lambda f, b: f.in_precision(b, kind))

    def settled(self) -> Any:
        """Return the model in a form whose steps use whole arrays, which are cheap on a device."""
        return self._map(lambda f, b: f.settled(b))

    def _map(self, function: Any) -> Any:
        """Return the model with a function applied to each block, given its family."""
        blocks = tuple(function(family_of(block), block) for block in self.blocks)
        return self._replace(blocks=blocks)

    def penalty(self) -> float:
        """Return -ln of the prior, up to a constant: training adds it to the sum of the losses."""
        return self.classes.penalty() + sum(
            family_of(block).penalty(block) for block in self.blocks if block.has_columns
        )

    def mean_of(self, models: list[Any], shares: np.ndarray) -> Any:
        """Return the mean of models like this one, without averages, over expected statistics."""
        blocks = tuple(
            family_of(own[0]).mean_of(
                list(own), shares, [m.by_column(b, m.classes.shares[None, :])[0] for m in models]
            )
            for b, own in enumerate(zip(*(model.blocks for model in models), strict=True))
        )
        classes = mean_classes([model.classes for model in models], shares)
        return self._replace(classes=classes, blocks=blocks, weight=0.0)

    def check(self, n_classes: int, n_features: Any) -> None:
        """Validate the model, which may come from any file."""
        check_array("first", self.first, (n_classes + 1,), least=0, dtype=np.int64)
        begins = self.first[0] == 0 and (np.diff(self.first) > 0).all()
        demand(begins, "some classes have no components")
        demand(isinstance(self.classes, Classes), "it has no classes")
        averages = self.classes.check(int(self.first[-1]))
        check_number("weight of the average", self.weight, least=0.0, kind=float)
        demand(isinstance(self.blocks, tuple) and self.blocks, "it has no blocks")
        sizes = n_features if len(self.blocks) > 1 else (n_features,)
        for b, (block, size) in enumerate(zip(self.blocks, sizes, strict=True)):
            demand(isinstance(block, Block), "one of its blocks is none")
            columns = self.columns_of(b)
            width = int(self.first[-1] if columns is None else columns.max() + 1)
            family_of(block).check(block, width, size, averages)


def perturbed(model: Any, components: np.ndarray, rng: Any) -> Any:
    """Perturb components that would otherwise stay identical."""
    return model._map(lambda f, b: f.perturbed(b, components, rng))
