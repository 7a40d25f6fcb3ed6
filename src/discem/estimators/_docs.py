"""Documentation that all estimators share, written once."""

from __future__ import annotations

_LOSS = """loss : {"ncll", "hinge", "nll", "blend"} or loss object, default="ncll"
    What training minimises: the negative conditional log-likelihood (as logistic regression does),
    the hinge loss (as an SVM does), the negative log-likelihood (plain naive Bayes), or
    `Blend(kappa)`, NCLL plus kappa times NLL."""

_COMMON = """init : {"generative", "prior"}, default="generative"
    Start at the closed-form estimate under NLL, or at the prior's own statistics (as the paper).
    Under a discriminative loss Gaussian classes start with the variance of the prior, by default
    that within all classes together, if that has the lower objective.
step : "auto" or callable, default="auto"
    Size of step t = 1, 2, ...: `inverse(lam)` (the paper's), `power(rho0, t0, kappa)`,
    `constant(rho)` or any function of t; with `by_row(..)` of single rows, some at a time. "auto"
    needs no tuning.
projection : {"interior", "check"}, Interior or Check, default="interior"
    How counts and variances are kept positive: by shortening the step of the factor concerned, or
    by the paper's check-step, which lifts what fell out. Interior steps are also damped, see
    `Interior`.
average : bool or "auto", default="auto"
    Predict with the running average of the parameters (weights growing like t^2). "auto" averages
    where it helps: under a discriminative loss; topics in the second half of `fit` only.
batch_size : int or "auto", default="auto"
    Rows per step. With "auto", `fit` takes steps of all rows at once, with a line search, for
    models of numbers and tables: training cannot end above its start. Streams take 16 rows, models
    of words a number that depends on the data. Where `step` is given, or ``projection="check"``,
    "auto" is 1: the paper's algorithm.
max_iter : int, default=300
    Epochs at most; with steps of all rows, steps at most.
tol : float or None, default=1e-3
    Stop when no more than this is left to gain. Where parameters are averaged that is in nats a
    row, for 2 epochs in a row, judged by the penalised objective of the average; else it is a share
    of the loss, for 10 epochs in a row: of held-out rows with early stopping, or the mean of the
    last 10 progressive ones. None runs all `max_iter` epochs.
early_stopping : bool or float, default=False
    Hold out a tenth of the labelled rows of each class, or that share, stop by their loss, and keep
    the best model.
class_weight : dict, "balanced" or None, default=None
callback : callable or None, default=None
    Called as ``callback(model, record)`` after each epoch; training stops if it returns True.
n_jobs : int or None, default=None
    Threads that train and predict; None is one, -1 as many as there are cores. Each learns a part
    of the rows of an epoch, then their models are averaged: a result close to that of one thread,
    and always the same for as many. Few rows stay on one thread, and so does a small batch of
    `partial_fit`. It takes the memory of as many models and two more.
device : None, "cpu", "auto", str, torch.device or Device, default=None
    Where arrays are: None and "cpu" are NumPy; "cuda" and other devices of PyTorch train and
    predict there, in double precision unless `Device` says otherwise; "auto" is the GPU, if there
    is one. The model comes back as if it had been trained here.
engine : None, "dask" or Dask, default=None
    Where `fit` runs: None is here, on `n_jobs` threads. `Dask(client)` is on the workers of a
    cluster, which also read collections of dask: arrays, data frames, series and bags. "dask" is
    the current client or, where there is none, a local cluster.
random_state : int, RandomState or None, default=None
verbose : int, default=0
    1 shows a bar while training takes long, and a line at its end. 2 shows a line for each epoch
    and each candidate. The logger "discem" receives these lines at the level INFO."""

_UNLABELLED = """unlabelled_weight : float or "auto", default="auto"
    Weight of an unlabelled row, which is learnt through its NLL, beside that of a labelled one.
    "auto" is 1 under NLL. Elsewhere such steps undo what labels taught unless they are small: it is
    0.001 in `MixtureClassifier`, and in `TopicClassifier` such that all unlabelled rows weigh 0.005
    times as much as all labelled ones. `MultinomialNB` has a better way under a discriminative
    loss: when `fit` has learnt from labels, all unlabelled rows move the words by one step up their
    likelihood. The weight is then how much that step says beside the labels: 1 is as much, 0
    nothing; "auto" tries 0, 1/2, 1 and 2 on labelled rows that are held out in turn. `partial_fit`
    takes no step for them."""

_ATTRIBUTES = """mu_, theta_ : dicts of arrays
    The model in both its parametrisations: expected statistics, and natural parameters.
classes_ : array of shape (n_classes,)
class_count_, class_frequency_ : arrays of shape (n_classes,)
    Observed weight of each class, and its share (or what `set_class_prior` said that it is).
class_prior_ : array of shape (n_classes,)
    p(y) of the joint. NLL makes it the frequency of the class; a discriminative loss makes of it
    what tells the classes apart best.
temperature_ : float
    What log-probabilities are multiplied by before they are normalised; see `calibrate`.
n_features_in_, feature_names_in_ : as in scikit-learn
n_iter_ : int
    Epochs done (batches, for `partial_fit`).
history_ : list of dicts
    Per epoch: the loss trained on (of hinge a soft one, where steps take several rows), `nll`,
    `ncll`, `hinge` and `accuracy`, all progressive (from the scores taken before each update);
    `validation_*` with early stopping; `step`, the share of `shortened` steps, `seconds`. For words
    also `perplexity`. Where parameters are averaged, `objective`: mean loss and penalty, a row, of
    the average. `went_back` where an epoch ended above the start, so that training went back there
    and shortened its steps. On workers, `parts`: in how many the rows were trained, for small
    partitions are trained together. Of a stream, the last 100 batches.
stream_ : dict
    What all batches of a stream come to: the number of `batches` and `rows`, the `weight` of the
    labelled ones, `seconds`, and the mean `loss`, `nll`, `ncll`, `hinge` and `accuracy`, all
    progressive. Empty where there was no `partial_fit`."""


_CV = """cv : None, int, splitter, iterable or array, default=None
    What is held out to choose by. None is a fifth of the rows of each class, one fifth after the
    other where it is fewer than 200; a number is that of the folds, which are all held out. Where
    rows belong together or follow in time it is a splitter of scikit-learn, pairs of rows to train
    on and rows to hold out, or the group of each row: a group is held out as a whole."""

_SECTIONS = {
    "loss": _LOSS,
    "cv": _CV,
    "common": _COMMON,
    "unlabelled": _UNLABELLED,
    "attributes": _ATTRIBUTES,
}


def documented(cls: type) -> type:
    """Fill the shared sections into the docstring of an estimator."""
    doc = cls.__doc__ or ""
    for name, text in _SECTIONS.items():
        doc = doc.replace(f"    {{{name}}}", "\n".join(f"    {line}" for line in text.splitlines()))
    defaults = cls()  # not the signature: Python 3.11.2 takes that of an inherited __new__
    doc = doc.replace("max_iter : int, default=300", f"max_iter : int, default={defaults.max_iter}")
    if defaults.tol is None:
        doc = doc.replace("tol : float or None, default=1e-3", "tol : float or None, default=None")
    cls.__doc__ = doc.replace("{{", "{").replace("}}", "}")
    return cls
