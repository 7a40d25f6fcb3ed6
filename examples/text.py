"""Text: tell docstrings apart by library, beside tf-idf with a linear SVM; and say why."""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import discem
from discem.datasets import docstrings

texts, labels = docstrings(max_per_library=200)
train, test, y, y_test = train_test_split(texts, labels, stratify=labels, random_state=0)

model = discem.TextClassifier(random_state=0).fit(train, y)
svm = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(random_state=0)).fit(train, y)
print(f"discem             {model.score(test, y_test):.3f}", end="  ")
print(f"log-loss {log_loss(y_test, model.predict_proba(test)):.3f}")
print(f"linear SVM         {svm.score(test, y_test):.3f}")
print("chosen:", {name: model.chosen_[name] for name in ("loss", "weighting", "epochs")})

print("\nwords that speak for each library:")
for label in model.classes_:
    print(f"  {label:<12}", *(word for word, _ in model.top_words(label, 6)))

why = model.explain(test[0])
print(f"\n{test[0][:70]}...\nis from {model.predict(test[:1])[0]}, mostly because of:")
for word, part in why.against()[:5]:
    print(f"  {part:+.2f}  {word}")
