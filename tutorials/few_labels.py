"""
Few labels
==========

Labels are expensive. This tutorial uses rows without labels, rows of which two labels
are possible, and labels that annotators are not sure of.
"""

# %%
# The texts
# ---------
# The texts are docstrings of installed libraries. Which library is a docstring from?

import matplotlib.pyplot as plt
import numpy as np
from discem import GaussianNB, TextClassifier
from discem.datasets import docstrings
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

texts, labels = docstrings(max_per_library=150, random_state=0)
texts, texts_test, labels, y_test = train_test_split(
    texts, labels, random_state=0, stratify=labels
)
labels = np.array(labels)
for name in np.unique(labels):
    print(f"{name:<12} {(labels == name).sum()} texts")

# %%
# Texts without labels
# --------------------
# Now only four texts per library keep their label. A document without a label is
# marked by ``None``; ``fit`` learns from both kinds. We repeat it for three draws of
# the labelled texts, because a draw matters much.

alone, together = [], []
for seed in range(3):
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(np.flatnonzero(labels == k)) for k in np.unique(labels)]
    known = np.concatenate([rows[:4] for rows in shuffled])
    some = np.full(len(labels), None)
    some[known] = labels[known]
    own = TextClassifier(random_state=0).fit([texts[i] for i in known], labels[known])
    alone.append(own.score(texts_test, y_test))
    together.append(
        TextClassifier(random_state=0).fit(texts, some).score(texts_test, y_test)
    )
names = [
    f"{len(known)} labelled texts",
    f"and {len(labels) - len(known)} without label",
]
figure, ax = plt.subplots(figsize=(5, 2.4), layout="constrained")
for place, (name, found) in enumerate(zip(names, (alone, together), strict=True)):
    ax.plot(found, [place] * len(found), "o", alpha=0.7)
    print(f"{name:<25} {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")
ax.set(yticks=[0, 1], yticklabels=names, ylim=(1.5, -0.5), xlabel="accuracy")

# %%
# Two possible labels
# -------------------
# Sometimes you know that a wine is one of two sorts. Give y as a matrix of booleans:
# which classes are possible for which row. Here *every* row has a wrong candidate
# beside the right one.

X, X_test, y, y_test = train_test_split(
    *load_wine(return_X_y=True), test_size=0.5, random_state=0
)
rng = np.random.default_rng(0)
possible = np.eye(3, dtype=bool)[y]
possible[np.arange(len(y)), (y + rng.integers(1, 3, size=len(y))) % 3] = True
print(possible[:3])

exact = GaussianNB(random_state=0).fit(X, y)
candidates = GaussianNB(random_state=0).fit(X, possible)
print(f"exact labels:   {exact.score(X_test, y_test):.3f}")
print(f"two candidates: {candidates.score(X_test, y_test):.3f}")

# %%
# Annotators who are not sure
# ---------------------------
# Shares that sum to 1 say how likely each class is. Here annotators give 80 % to the
# right class.

shares = 0.7 * np.eye(3)[y] + 0.1
unsure = GaussianNB(random_state=0).fit(X, shares)
print(f"labels that are 80 % sure: {unsure.score(X_test, y_test):.3f}")
