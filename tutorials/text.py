"""
Sort texts, and say why
=======================

Which library does a docstring come from? We train a classifier of texts on the
docstrings of the libraries that are installed with discem, compare it with a linear
SVM, and look at the words that decide.
"""

# %%
# The texts
# ---------

import matplotlib.pyplot as plt
from discem import TextClassifier
from discem.datasets import docstrings
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

texts, labels = docstrings(max_per_library=300, random_state=0)
texts, texts_test, y, y_test = train_test_split(
    texts, labels, stratify=labels, random_state=0
)
print(len(texts), "texts to learn from, for example:\n")
print(texts[0][:300])

# %%
# Fit
# ---
# ``TextClassifier`` counts and weights the words itself. It tries losses and
# weightings on texts that it holds out, finds the number of epochs and the
# temperature that makes its probabilities honest, and then learns from all texts.

model = TextClassifier(random_state=0).fit(texts, y)
model

# %%
model.choice_

# %%
# Compare
# -------
# A linear SVM on tf-idf is the usual yardstick. It has no probabilities.

svm = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(random_state=0)).fit(
    texts, y
)
print(f"linear SVM      accuracy {svm.score(texts_test, y_test):.3f}")
print(f"TextClassifier  accuracy {model.score(texts_test, y_test):.3f}", end=", ")
print(f"log-loss {log_loss(y_test, model.predict_proba(texts_test)):.3f}")

# %%
# Which words speak for a library?
# --------------------------------

axes = model.plot_classes()

# %%
# Why was this text sorted so?
# ----------------------------
# Each word adds its part to the log-odds of the best class against the next best one.
# The parts are exact.

text = texts_test[3]
print(
    f"{text[:200]}...\n\npredicted: {model.predict([text])[0]}, in truth: {y_test[3]}"
)
model.explain(text)

# %%
# Few labels: add what texts mean
# -------------------------------
# An encoder makes a vector of each text. Vectors become a second block of the joint.
# Here pieces of words stand for one that was trained on much text.

pieces = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), n_features=2**14)
encoder = make_pipeline(pieces, TruncatedSVD(64, random_state=0)).fit(texts)
few, few_y = texts[:100], y[:100]
for name, each in {"words": None, "words and vectors": encoder}.items():
    small = TextClassifier(each, random_state=0).fit(few, few_y)
    print(f"{name:18} accuracy {small.score(texts_test, y_test):.3f}")

# %%
# The part of the vector stands beside those of the words.

small.explain(text)

# %%
# Leave the doubtful ones to people
# ---------------------------------
# If the least certain texts are left to people, the rest is almost always right.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
model.plot_calibration(texts_test, y_test, left)
model.plot_rejection(texts_test, y_test, right)
