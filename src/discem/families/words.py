"""The family of words: a multinomial per component over sparse counts, which may be real numbers.

The statistics of a document are its counts. The expected count of word w in component k is
``scale * count[w, k] + gamma * alpha[w]``: decay and prior act on all words at once through the
scalars `scale` and `gamma`, so a step costs only the words of its batch. The likelihood is that of
the words in order, without the multinomial coefficient (which no component can change).

A step changes the counts in place, as two copies may not fit into memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._arrays import count_true, may_be_true, namespace_of
from .._checks import Array, Number, check_weight, demand
from .._sparse import add_rows, row_sums
from ..exceptions import OptionError
from ..figures import NCLL_SUM, NLL_SUM
from ..io.column_kinds import ColumnKind, Found, register_column
from ..io.rows import SparseRows, extended, sparse_rows
from ..priors import Dirichlet
from ..projections import Check
from ..schedules import constant
from . import _counts
from ._block import Accepts, Block, Schema, Step
from ._counts import expected_counts, log_probabilities
from ._documents import Documents, column_sums, documents, forget, found_once, space, take_rows
from ._family import register
from ._lazily import Lazily

_EAGER = 10.0  # a step weighs as many documents as this of the start, to forget the start soon
_QUIET = 0.005  # weight of all unlabelled documents together, relative to the labelled ones
_FEW, _MOST = 8, 512  # limits of documents per step
_FAR = 1e9  # counts beyond, or below its inverse, have squares too large or small for float32
_FOLDED = 1e-3  # smaller scales are folded into the counts, before digits are lost


class WordsFamily(Lazily):
    """Counts of words, drawn independently from the distribution of the component."""

    name = "words"
    priors = (Dirichlet,)
    accepts = Accepts(sparse=True, negative=False)
    scalars = ("scale", "gamma")

    # --- the three things a model asks for --------------------------------------------------------

    view = staticmethod(sparse_rows)

    def lightened(self, rows: SparseRows) -> SparseRows:
        values = rows.values
        if not 1.0 / _FAR < values.max(initial=0.0) < _FAR:
            return rows
        return rows._replace(values=values.astype(np.float32))

    def in_precision(self, block, kind):
        return _counts.in_precision(block, kind)

    def read(self, block, rows: SparseRows):
        return documents(rows, block.fixed["alpha"].shape[0])

    def cells(self, block: Block, batch: Documents) -> Any:
        """Return the expected counts of the words of a batch, (u, K), in its precision.

        The array must not be changed, and is invalid after the block has moved.
        """
        count, lazy = block.values["count"], block.lazy
        xp, mixed = namespace_of(count), count.dtype != batch.dtype

        def find(purpose: str) -> Any:
            rows = take_rows(count, batch.words, "rows" if mixed else purpose)
            own = not mixed and isinstance(rows, np.ndarray)
            out = rows if own else space(rows.shape, purpose, batch.values)
            cells = xp.multiply(rows, lazy["scale"], out=out)
            prior = lazy["gamma"] * batch.of_words(block.fixed["alpha"])
            cells += prior
            if cells.dtype == xp.float64 and not mixed:
                return cells
            return _counts.lifted(cells, prior)

        return found_once(count, batch, find)

    def scores(self, block, batch: Documents):
        cells = self.cells(block, batch)
        xp = namespace_of(cells)
        logs = xp.log(cells, out=space(cells.shape, "logs", cells))
        # classes in rows: sums over few classes are then sums of long arrays
        total = block.values["total"]
        found = xp.subtract(batch.product(logs).T, xp.log(total)[:, None] * batch.lengths)
        return xp.astype(found, total.dtype, copy=False).T

    def expected(self, block, batch: Documents, weights, least=0.0):
        there, batch = batch.only(weights, least)
        return batch, batch.sums(weights[there], "sums")

    def leverage(self, block, batch: Documents, weights, step, least=0.0):
        """Return sum x^2 / count - length^2 / total, by component, after a step without losses.

        So a component with almost no mass can get its first document.
        """
        xp = namespace_of(weights)
        found = xp.zeros_like(weights)
        there, batch = batch.only(weights, least)
        weights, lengths = xp.abs(weights[there]), batch.lengths[:, None]
        after = batch.sums(weights, "after", self.cells(block, batch))
        even = lengths**2 / (block.values["total"] + weights * lengths)
        squares = batch.product(xp.reciprocal(after, out=after), power=2)
        found[there] = xp.astype(xp.clip(squares - even, 0.0, None), found.dtype, copy=False)
        return found

    def moved(self, block, found, step: Step):
        """Limit the loss of each cell to a share of itself; the check-step keeps only the prior.

        Decay and prior act first, on all words at once.
        """
        (batch, sums), lazy, values = found, block.lazy, block.values
        xp, decay, pull = namespace_of(sums), float(step.decay), float(step.pull)
        check, keep, share = isinstance(step.projection, Check), 1.0, step.projection.most_lost
        cells = self.cells(block, batch)
        if decay != 0.0:
            keep -= min(decay, 1.0 - 1e-12 if check else share)
            if lazy["scale"] * keep < _FOLDED:
                _counts.fold(block)
                forget()
        scale, gamma = lazy["scale"] * keep, lazy["gamma"] * keep + pull
        if check:  # rounding must leave something
            rows = take_rows(values["count"], batch.words, "rows")
            least = -(1.0 - 1e-15) * xp.clip(rows * scale, 0.0, None)
        else:
            least = xp.multiply(cells, -share * keep, out=space(cells.shape, "least", cells))
            least -= share * pull * batch.of_words(block.fixed["alpha"])
        short, shortened = sums < least, 0
        if may_be_true(short):
            shortened = count_true(xp.any(short, axis=0))
            sums = xp.maximum(sums, least, out=least)
        total = values["total"] * keep + pull * lazy["alpha_total"]
        total = xp.maximum(total + column_sums(sums), 1e-16 * total)
        changes = sums
        if sums.dtype != values["count"].dtype:
            changes = space(sums.shape, "changes", values["count"])
            changes[...] = sums
        forget()
        # written at once, so that an interruption leaves a consistent state
        lazy["scale"], lazy["gamma"] = scale, gamma
        values["total"][:] = total
        add_rows(values["count"], batch.words, changes, 1.0 / scale)
        if block.past:
            add_rows(block.past["lag"], batch.words, changes, lazy["lag_scale"] / scale)
        return block, shortened

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows, parts, n_features, n_classes):
        return _counts.collect(rows, parts, n_features, n_classes)

    def start(self, prior, tally, total, init, stream):
        """Start in the memory of the tally, as two tables may not fit."""
        alpha = _counts.pseudo_counts(prior, tally)
        length = np.array([float(tally.sum()) / max(total, 1e-300)])
        total = max(total, 1.0)
        if init == "prior":
            tally[:] = alpha[:, None]
            return _counts.block_of(tally, 0.0, alpha, length, 1.0)
        tally /= total
        return _counts.block_of(tally, 1.0 / total, alpha, length)

    def perturbed(self, block, components, rng):
        """Make words more or less frequent, by at most a half."""
        size = len(block.fixed["alpha"]), len(components)
        return _counts.reweighed(block, rng.uniform(0.5, 1.5, size=size), components)

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        words, classes = Array((n_features, n_components)), Array((n_components,))
        values = {"count": words, "total": classes._replace(above=0.0), "unseen": classes}
        fixed = {"alpha": Array((n_features,), above=0.0), "length": Array((1,), least=0.0)}
        names = ("gamma", "lag_scale", "lag_gamma", "weight", "alpha_total")
        lazy = {"scale": Number(above=0.0), **dict.fromkeys(names, Number(least=0.0))}
        past = {"lag": words, "unseen": classes}
        return Schema(Array((0,)), values, fixed, None, past, lazy)

    def check_sense(self, block, n_components, n_features, averages):
        check_weight("weight", block.lazy["weight"])
        same = np.isclose(block.lazy["alpha_total"], block.fixed["alpha"].sum(), rtol=1e-6)
        demand(same, "alpha_total is not the sum of alpha")
        inside = block.values["count"].min() >= 0.0 or _counts.least_count(block) >= 0.0
        demand(inside, "counts and what the prior adds to them are negative")

    def with_average(self, block):
        """Start an average; a lag is what it lacks, times its weight, and changes in place."""
        past = {name: np.zeros_like(block.values[v]) for name, v in _counts.LAGS.items()}
        lazy = block.lazy | {"lag_scale": 0.0, "lag_gamma": 0.0, "weight": 0.0}
        return block._replace(past=past, lazy=lazy)

    def with_past(self, block, past, weight):
        lazy, values, other = block.lazy, block.values, past.values
        factors = [weight * lazy["scale"], -weight * past.lazy["scale"]]
        lags = {
            lag: _counts.weighted_sum(factors, [values[name], other[name]])
            for lag, name in _counts.LAGS.items()
        }
        own = {"lag_scale": weight * lazy["scale"], "lag_gamma": weight * past.lazy["gamma"]}
        return block._replace(past=lags, lazy=lazy | own | {"weight": weight})

    def averaged(self, block):
        return _counts.averaged(block) if block.past else block

    def with_components(self, block, order, mass):
        """Add components; a new one has `mass` documents with the prior's words."""
        lazy, values = block.lazy, block.values
        words = mass * values["total"].mean()
        share = words / lazy["alpha_total"] / lazy["scale"]
        new = {"count": block.fixed["alpha"] * share, "unseen": np.array(share)}
        new["total"] = np.array(words + lazy["gamma"] * lazy["alpha_total"])
        none = {name: np.zeros(array.shape[:-1]) for name, array in block.past.items()}
        past = _counts.arranged(block.past, none, order)
        return block._replace(values=_counts.arranged(values, new, order), past=past)

    def with_features(self, block, n_features):
        """Add words, each with the expected count of a word that never occurred.

        Their pseudo-count is that of the first word, so all words should have the same one. The
        given block shares memory with the result, so do not use it again.
        """
        lazy, values, alpha = block.lazy, block.values, block.fixed["alpha"]
        new, prior = n_features - len(alpha), float(alpha[0])
        cell = (lazy["scale"] * values["unseen"] + lazy["gamma"]) * prior
        wider = values | {
            "count": extended(values["count"], new, values["unseen"] * prior),
            "total": values["total"] + new * cell,
        }
        past = dict(block.past)
        if past:
            past["lag"] = extended(past["lag"], new, past["unseen"] * prior)
        return block._replace(
            values=wider,
            past=past,
            fixed=block.fixed | {"alpha": extended(alpha, new, prior)},
            lazy=lazy | {"alpha_total": lazy["alpha_total"] + new * prior},
        )

    def mean_of(self, blocks, shares, by_component):
        return _counts.mean_of(blocks, shares)

    def penalty(self, block):
        alpha, cells = block.fixed["alpha"], expected_counts(block)
        found = (alpha @ np.log(cells, out=cells)).sum()
        return float(alpha.sum() * np.log(block.values["total"]).sum() - found)

    def sample(self, block, codes, rng):
        p = log_probabilities(block)
        p = np.exp(p - p.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        lengths = _counts.draw_lengths(block, len(codes), rng)
        return np.stack([rng.multinomial(n, p[k]) for k, n in zip(codes, lengths, strict=True)])

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        log = float(np.log(max(n_features, 3)))
        return {
            "data": (Dirichlet(1.0) if generative else Dirichlet(), 1.0),
            "laplace": (Dirichlet(1.0), 1.0),
            "log": (Dirichlet(log), log),  # the supplement adds the same gamma to class counts
        }

    def check_prior(self, prior):
        if prior.alpha is None and not 0 < prior.strength < np.inf:
            raise OptionError(f"prior={prior!r}: strength must be > 0")
        if prior.alpha is not None and prior.strength != Dirichlet().strength:
            raise OptionError(
                f"prior={prior!r}: strength stands in for alpha, give one of them only"
            )

    def complete_prior(self, prior, rows, parts, components=1.0):
        if prior.alpha is not None:
            return prior
        square = _counts.typical_square(rows, parts)
        return prior._replace(alpha=float(prior.strength) * square / components)

    def keeps_mass(self, prior):
        return False

    lifts_to_prior = True
    least_rows = 200
    least_visits = 6e7  # steps are short, and threads wait for Python's lock

    def step_of_part(self, rho, parts):
        """Lengthen steps: a part only sees its share of the occurrences of a word."""
        return parts * rho

    def auto_step(self, generative, n, block, mixed=False):
        if generative:
            return super().auto_step(generative, n, block, mixed)
        if block.values["unseen"].any():  # at the prior: a step is a document beside pseudo-counts
            return constant(1.0)
        return constant(_EAGER / n)

    whole = False

    def auto_batch(self, rows, n_classes):
        return batch_of(rows.n_rows, n_classes)

    def auto_unlabelled(self, generative, ratio):
        # an NLL step replaces a share of all counts, including those that separate classes
        return 1.0 if generative else _QUIET / ratio

    def expectations(self, block):
        return {"word": block.fixed["length"][0] * np.exp(log_probabilities(block))}

    def slopes(self, block):
        return np.zeros(len(block.values["total"])), {"word": log_probabilities(block)}

    def features_of(self, X):
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        """Return documents scaled to length 1."""
        from sklearn.preprocessing import normalize

        stored = rows.values, rows.indices, rows.indptr
        return normalize(sp.csr_matrix(stored, shape=(len(weights), n_features)))

    def extra_figures(self, figures, rows, order, weights):
        """Return the perplexity: exp of -ln p(x) per word."""
        n_words = float(row_sums(rows.values, rows.indptr)[order] @ weights[order])
        log_likelihood = figures[NCLL_SUM] - figures[NLL_SUM]  # ln p(x)
        exponent = -log_likelihood / max(n_words, 1e-300)
        return {"perplexity": float(np.exp(min(exponent, 700.0)))}

    def example(self, codes, n_features, rng):
        rates = 0.3 + 3.0 * rng.random((codes.max() + 1, n_features))
        return rng.poisson(rates[codes]).astype(float)


def batch_of(n: float, n_classes: int, eager: bool = True) -> int:
    """Return the documents per step, for n documents.

    Steps that forget the start quickly need few documents: those of one batch all pull in the same
    direction. A few cost no more than one.
    """
    most = min(n / 32, 32 * n_classes) if eager else n / 16
    return int(np.clip(max(most, min(n / 4, _FEW)), 1, _MOST))


WORDS = WordsFamily()
register(WORDS)

# --- columns of tables ----------------------------------------------------------------------------

_CELLS, _SENTENCE = 20, 5  # so many texts, mostly different, of more words than that are documents


class TextColumn(ColumnKind):
    """Texts. A model of documents reads their words; the families of a table ignore them."""

    name = "text"
    turn = 15
    takes = "text"
    has_texts = True

    def recognise(self, sample):
        content, n = sample.content, len(sample.values)
        if not content.is_text or content.named or n < _CELLS or 2 * len(sample.counts) <= n:
            return None
        words = sum(len(text.split()) for text in sample.counts) / len(sample.counts)
        return Found(f"{words:.0f} words each") if words > _SENTENCE else None


register_column(TextColumn())
