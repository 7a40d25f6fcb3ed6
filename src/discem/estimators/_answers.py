"""Methods that need a joint model: impute, sample, distributions, and strangeness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InputError, OptionError
from ..families._distributions import OfLevels
from ..io.column_kinds import IGNORED
from ..io.columns import Column, place
from ..io.frames import check_table
from ..io.tables import Layout
from ..io.vectors import plain_name
from ..targets import UNKNOWN
from . import _input
from ._by_label import place_of
from ._impute import Distribution, check_how, distribution, draw, impute
from ._options import check_whole
from ._pieces import by_partition
from ._strange import Doubts, Usual, surprises, typical
from ._tables import NUMBERS, Encoded
from ._threads import reads
from ._types import Labels, RandomState, Table

if TYPE_CHECKING:
    from .mixture import MixtureClassifier


class Answers(Doubts):
    """Methods of estimators with a density of the rows of a table."""

    classes_: np.ndarray

    def _joint(self) -> Any:
        check_is_fitted(self)
        return self

    def _layout(self) -> Layout:
        """Return the layout of the columns of the model; the columns of an array are numbers."""
        me: Any = self._joint()
        if hasattr(me, "layout_"):
            return me.layout_
        family = me._known_family().name
        if family not in NUMBERS.values():
            raise OptionError(f"rows of the family {family!r} have no cells that can be asked for")
        names = getattr(me, "feature_names_in_", None)
        columns = [
            Column(plain_name(name), "gaussian", "given", "number", [])
            for name in (range(me.n_features_in_) if names is None else names)
        ]
        return Layout(columns, names is not None)

    # --- cells ------------------------------------------------------------------------------------

    @reads
    def impute(
        self,
        X: Table,
        y: Labels = None,
        how: str = "mean",
        n_draws: int = 1,
        random_state: RandomState = None,
    ) -> Any:
        """Fill in the missing cells of a table from ``p(missing | the other cells, y)``.

        The result has the types and the index of X. Columns unknown to the model are returned
        unchanged. Missing cells stay missing if the column had no observed cell in training, or a
        different text in every row. Imputed cells stay within the range of the training data.

        Parameters
        ----------
        X : table as for `fit`
        y : array-like of shape (n_samples,), optional
            Labels, with None or NaN for a row without a label, or sets of labels.
        how : {"mean", "mode", "draw"}, default="mean"
            The mean (of categories, which have none, the most probable one), the most probable
            value, or a random draw. "mode" and "draw" keep whole numbers whole.
        n_draws : int, default=1
            With ``how="draw"``, how many tables to return.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        table like X, or a list of `n_draws` of them if there is more than one
        """
        check_how(how, n_draws)
        model, rng, table = self._joint(), check_random_state(random_state), check_table(X)
        return impute([model], X, self._allowed(y, table.n_rows), how, n_draws, rng)

    @reads
    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        y: Labels = None,
        given: Mapping[Any, Any] | None = None,
    ) -> tuple[Any, np.ndarray]:
        """Draw rows, as a table like the training table, and labels from the joint.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None
        y : label, optional
            Draw rows of this class.
        given : dict from column to cell, optional
            Draw the other cells, and the label, given these.

        Returns
        -------
        X : table of n_samples rows
        y : array of shape (n_samples,)
        """
        model, rng = self._joint(), check_random_state(random_state)
        if given is None and not hasattr(self._joint(), "layout_"):  # of an array, or of words
            return super().sample(n_samples, random_state, y=y)  # type: ignore[misc]
        check_whole("n_samples", n_samples)
        rows = self._given(given).take(np.zeros(n_samples, dtype=np.int64))
        cells, components = draw([model], rows, self._of_class(y, n_samples), rng)
        return rows.layout.decode(cells), model.classes_[model.learner_.model.code[components]]

    @reads
    def distribution(
        self, column: Any, given: Mapping[Any, Any] | None = None, y: Labels = None
    ) -> Any:
        """Return the distribution of a column given other cells of its row, and the label.

        Parameters
        ----------
        column : name of a column, or its index for an array given : dict from column to cell,
        optional y : label, optional

        Returns
        -------
        dict from level to probability, or `Distribution`
            A dict for categories and flags; otherwise an object with `mean`, `std` and
            ``quantile(q)``.
        """
        j, row = self._place_of(column), self._given(given)
        found = row.layout.columns[j]
        if row.there()[0, j]:
            raise InputError(f"{place(found.name)} is given, and its distribution is asked for")
        if not found.is_modelled:
            what = "ignored by the model" if found.family == IGNORED else "text, without a density"
            raise InputError(f"{place(found.name)} is {what} ({found.why})")
        answer = distribution([self._joint()], row, self._of_class(y), j)
        if isinstance(answer, OfLevels):
            return dict(zip(found.levels, answer.p[0].tolist(), strict=True))
        return Distribution(answer, found.kind)

    def _given(self, given: Any) -> Encoded:
        """Return one row with only the given cells; their columns must be known."""
        known = self._known("given", {} if given is None else given)
        encoded = self._row(known)
        for column, there in zip(encoded.layout.columns, encoded.there()[0], strict=True):
            if column.name in known and column.is_modelled and not there:
                what = "level" if column.has_levels else "cell"
                raise InputError(f"{place(column.name)} has no {what} {known[column.name]!r}")
        return encoded

    def _known(self, what: str, cells: Any) -> dict[str | int, Any]:
        """Return the cells that are not missing, by the names of their columns."""
        named = self._named(what, cells)
        return {name: cell for name, cell in named.items() if _is_there(name, cell)}

    def _named(self, what: str, cells: Any) -> dict[str | int, Any]:
        """Return a dict or a row of a frame by the column names of the model."""
        if not hasattr(cells, "items") or hasattr(cells, "columns"):  # a Series has no columns
            raise InputError(f"{what} is a {type(cells).__name__}: give a dict from column to cell")
        columns = self._layout().columns
        return {columns[self._place_of(name)].name: cell for name, cell in cells.items()}

    def _row(self, known: dict[str | int, Any]) -> Encoded:
        """Return one row with only the given cells."""
        layout = self._layout()
        nothing = {column.name: None for column in layout.columns}
        return Encoded.read(layout.named_by_keys(), [nothing | known])._replace(layout=layout)

    def _place_of(self, name: Any) -> int:
        names = [column.name for column in self._layout().columns]
        if plain_name(name) not in names:
            raise InputError(f"the model has no column {name!r}; there are: {names[:20]}")
        return names.index(plain_name(name))

    def _of_class(self, label: Any, n_rows: int = 1) -> np.ndarray | None:
        """Return an (n, K) mask that fixes the class of rows; None if no class is given."""
        if label is None:
            return None
        classes = self._joint().classes_
        return np.tile(np.arange(len(classes)) == place_of(classes, label), (n_rows, 1))

    def _allowed(self, y: Any, n_rows: int) -> np.ndarray | None:
        """Return which classes each row may have, (n, K)."""
        if y is None:
            return None
        classes = self._joint().classes_
        y, named = _input.read_y(y, n_rows, needed=False)
        if named is not None:
            y = _input.spread_over(y, named, classes)
        targets = _input.encode(y, classes)
        unknown = np.flatnonzero(targets.codes == UNKNOWN)
        if len(unknown):
            raise InputError(
                f"y has {y.tolist()[unknown[0]]!r}, which is no class; there are: "
                f"{classes.tolist()[:20]}"
            )
        allowed = targets.even_shares(len(classes)) > 0.0
        return allowed | ~targets.labelled[:, None]

    # --- doubts -----------------------------------------------------------------------------------

    @reads
    def strangeness(self, X: Table, usual: Table | None = None) -> np.ndarray:
        """Return how much stranger than usual each cell is, given the other cells of its row.

        The value is ``-ln p(cell | the other cells)``, in nats, minus the mean of that number for
        the column in held-out rows. The columns with the largest values make the row one of the
        `outliers`.

        Parameters
        ----------
        X : table
        usual : table, optional
            Usual rows that were not used in training. Needed if `fit` held nothing out.

        Returns
        -------
        array of shape (n_samples, n_features)
            0 for missing cells.
        """
        model = self._joint()
        layout = self._layout()
        found = surprises(model, Encoded.read(layout, X))
        if usual is None:
            return np.nan_to_num(found - self._usual().by_column)
        return np.nan_to_num(found - typical(surprises(model, Encoded.read(layout, usual))))


def _is_there(name: Any, cell: Any) -> bool:
    return not check_table([{name: cell}]).content(0).missing[0]


class DensityAnswers(Answers):
    """Methods of estimators with a density beside the predictive model."""

    _fitted: Any

    def _joint(self) -> MixtureClassifier:
        check_is_fitted(self)
        return self._fitted.density or self._fitted.model

    def _usual(self) -> Usual:
        check_is_fitted(self)
        if self._fitted.usual is None:
            raise OptionError("nothing was held out: use fit or more batches, with density=True")
        return self._fitted.usual

    @by_partition()
    @reads
    def score_samples(self, X: Table) -> np.ndarray:
        """Return ``ln p(x)`` of each row: low for rows unlike the training data.

        The density is `density_`, or the classifying model if there is no `density_`.
        """
        return self._joint().score_samples(X)
