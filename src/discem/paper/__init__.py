"""The paper's own algorithms, one row at a time, as compiled loops.

Each file holds one model of the paper and follows its pseudo-code:

- `gaussian`: the toy example of section 4.1 (Algorithm 1);
- `multinomial`: multinomial naive Bayes (Algorithms 2, 3 and 4 of the supplement);
- `topics`: topics within each class (Algorithms 5, 6 and 7) and their collapsed Gibbs sampler.

`losses` has the weights of Table 1, and `classifier` the Python face that all three share. The
package is not part of ``import discem``. It needs numba, which ``pip install 'discem[paper]'``
installs. It shares no code with the rest of discem, so each side is a test of the other.

Random numbers: ``train(..., seed=s)`` draws everything from one ``numpy.random.RandomState(s)``.
The topic model first draws the seed of its sampler; then every epoch draws one permutation of the
rows. A ``numpy.random.Generator`` may be given in place of the seed.

Compiled code is cached next to the source. Numba renews the cache of a function when its own file
changes, but not when a function that it calls changes in another file: delete ``__pycache__`` after
you have edited `losses`.
"""

from __future__ import annotations

from ..exceptions import MissingExtraError

try:
    from numba import njit
except ImportError as error:
    raise MissingExtraError(
        "the paper's row-by-row algorithms need numba: pip install 'discem[paper]'"
    ) from error

# Division by zero gives inf or NaN, as in NumPy; threads may run at the same time.
compiled = njit(cache=True, error_model="numpy", nogil=True)
