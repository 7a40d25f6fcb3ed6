"""Text: tell docstrings apart by library, beside plain naive Bayes and a linear SVM."""

import numpy as np
from sklearn import naive_bayes
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

import discem
from discem.datasets import docstrings

texts, labels = docstrings(max_per_library=200)
train, test, y, y_test = train_test_split(texts, labels, stratify=labels, random_state=0)
counts = CountVectorizer(min_df=2)
X, X_test = counts.fit_transform(train), counts.transform(test)

model = discem.MultinomialNB(random_state=0).fit(X, y)
print(f"discem, ncll       {model.score(X_test, y_test):.3f}")
print(f"plain naive Bayes  {naive_bayes.MultinomialNB().fit(X, y).score(X_test, y_test):.3f}")
print(f"linear SVM         {LinearSVC(random_state=0).fit(X, y).score(X_test, y_test):.3f}")

# The model is a word distribution per class: these words speak for each library.
words = counts.get_feature_names_out()
score = model.feature_log_prob_ - model.feature_log_prob_.mean(axis=0)
print()
for name, row in zip(model.classes_, score, strict=True):
    print(f"{name:<12}", *words[np.argsort(row)[::-1][:6]])
