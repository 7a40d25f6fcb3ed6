"""The paper's own algorithms, one row at a time, as compiled loops.

Each file holds one model and follows the pseudo-code of the paper's supplement:

- `gaussian`: the toy example of section 4.1 (Algorithm 1);
- `multinomial`: multinomial naive Bayes by Table 1 (the steps of Algorithms 2 and 4, Algorithm 3);
- `printed`: Algorithms 2 and 4 to the letter;
- `topics`: topics within each class (Algorithms 5, 6 and 7), with the sampler in `sampler`.

`losses` has the weights of Table 1, `inside` the bounds of a step, and `classifier` what all models
share. The package is not part of ``import discem``. It needs numba, which
``pip install 'discem[paper]'`` installs. It shares no code with the estimators, so each side is a
test of the other.

Random numbers: ``train(..., seed=s)`` draws everything from one ``numpy.random.RandomState(s)``.
The topic model first draws the seed of its sampler; then every epoch draws one permutation of the
rows. A ``numpy.random.Generator`` may be given in place of the seed.

Compiled code is cached next to the source. Numba renews the cache of a function when its own file
changes, but not when a function that it calls changes in another file: delete ``__pycache__`` after
you have edited a file that others import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..exceptions import MissingExtraError

try:
    from numba import njit
except ImportError:  # the first call says so
    njit = None


def compiled(function: Callable) -> Any:
    """Compile a function when it is first called.

    Division by zero gives inf or NaN, as in NumPy, and threads may run at the same time.
    """
    if njit is not None:
        return njit(cache=True, error_model="numpy", nogil=True)(function)

    @wraps(function)
    def refuse(*_: Any) -> None:
        raise MissingExtraError(
            "the paper's row-by-row algorithms need numba: pip install 'discem[paper]'"
        )

    return refuse
