"""NCLL-MNB by the letter of the supplement's pseudo-code: p(y | d) anew after every word.

The update of Table 1 takes p(y | d) once a document, and so does this library. The pseudo-code
(Algorithm 2 of the supplement) names it inside the loop over the words of the document; read to the
letter, each word moves the counts by a posterior that has seen the words before it. A document that
is classified right half-way through teaches nothing more, so steps are shorter.
"""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from discem._compile import kernel

T, GAMMA = range(2)  # of `clock`


class ByWord:
    """Counts of words and classes, trained word by word."""

    def __init__(self, alpha: float, n_words: int, n_classes: int):
        self.alpha = alpha
        self.words = np.full((n_words, n_classes), alpha)  # N of the pseudo-code
        self.totals = np.full(n_classes, alpha * n_words)  # M
        self.classes = np.ones(n_classes)  # C
        self.clock = np.zeros(2)

    def epoch(self, X: Any, codes: np.ndarray, order: np.ndarray, lam: float) -> None:
        room = np.zeros((2, len(self.classes)))
        learn(
            X.indptr, X.indices, X.data, codes, order, lam, self.alpha,
            self.words, self.totals, self.classes, self.clock, room,
        )  # fmt: skip

    def joint(self, X: Any) -> np.ndarray:
        """The scores ln p(y, d), one column a class."""
        words, classes = self.words + self.clock[GAMMA], self.classes + self.clock[GAMMA]
        return X @ np.log(words / words.sum(axis=0)) + np.log(classes / classes.sum())


def figures(joint: np.ndarray, codes: np.ndarray, n_words: float) -> dict[str, float]:
    """Hinge loss, NCLL and perplexity of documents that have so many words in all."""
    rows, evidence = np.arange(len(codes)), logsumexp(joint, axis=1)
    own, others = joint[rows, codes], joint.copy()
    others[rows, codes] = -np.inf
    return {
        "hinge": float(np.maximum(0, 1 - own + others.max(axis=1)).mean()),
        "ncll": float((evidence - own).mean()),
        "perplexity": float(np.exp(-evidence.sum() / n_words)),
    }


@kernel
def learn(indptr, indices, values, codes, order, lam, alpha, words, totals, classes, clock, room):
    """One pass over the documents in `order`."""
    K, W = len(classes), len(words)
    scores, p = room[0], room[1]
    for i in order:
        clock[T] += 1.0
        rho = 1.0 / (1.0 + lam * clock[T])
        clock[GAMMA] += alpha * rho / len(codes)
        gamma, length = clock[GAMMA], 0.0
        for j in range(indptr[i], indptr[i + 1]):
            length += values[j]
        for k in range(K):
            scores[k] = np.log(classes[k] + gamma) - length * np.log(totals[k] + gamma * W)
        for j in range(indptr[i], indptr[i + 1]):
            for k in range(K):
                scores[k] += values[j] * np.log(words[indices[j], k] + gamma)
        for j in range(indptr[i], indptr[i + 1] + 1):  # after the words, the class itself
            top, total = -np.inf, 0.0
            for k in range(K):
                top = max(top, scores[k])
            for k in range(K):
                p[k] = np.exp(scores[k] - top)
                total += p[k]
            for k in range(K):
                step = rho * ((1.0 if k == codes[i] else 0.0) - p[k] / total)
                if j == indptr[i + 1]:
                    classes[k] = max(classes[k] + step, 0.0)
                elif step != 0.0:
                    before, all_before = words[indices[j], k], totals[k]
                    after = max(before + step * values[j], 0.0)
                    words[indices[j], k] = after
                    totals[k] += after - before
                    scores[k] += values[j] * (np.log(after + gamma) - np.log(before + gamma))
                    all_words = gamma * W
                    scores[k] -= length * (
                        np.log(totals[k] + all_words) - np.log(all_before + all_words)
                    )
