"""Documentation that all estimators share, written once."""

from __future__ import annotations

_LOSS = """loss : {"ncll", "hinge", "nll", "blend"} or loss object, default="ncll"
    What training minimises: the negative conditional log-likelihood (as logistic regression does),
    the hinge loss (as an SVM does), the negative log-likelihood (plain naive Bayes), or
    `Blend(kappa)`, NCLL plus kappa times NLL."""

_STEPS = """init : {"generative", "prior"}, default="generative"
    Where training starts: at the closed-form estimate under NLL, or at the statistics of the prior,
    as in the paper. Under a discriminative loss, Gaussian classes may also start with the variance
    of the prior; the start with the lower objective is taken.
step : "auto" or callable, default="auto"
    The size of step t = 1, 2, ...: `inverse(lam)`, which is the paper's, `power(rho0, t0, kappa)`,
    `constant(rho)` or any function of t. `by_row(..)` gives a batch the sum of the steps of its
    rows. "auto" needs no tuning.
projection : {"interior", "check"}, Interior or Check, default="interior"
    How counts and variances are kept positive. "interior" shortens a step that would go too far,
    and damps it, see `Interior`. "check" is the paper's check-step: it takes the whole step and
    then lifts what became too small.
average : bool or "auto", default="auto"
    Whether to predict with the running average of the parameters, in which step t weighs t^2.
    "auto" averages under discriminative losses; for topics, only in the second half of `fit`.
batch_size : int or "auto", default="auto"
    Rows per step. With "auto", `fit` takes steps of all rows with a line search for numbers and
    tables, so that training cannot end above its start. Streams take 16 rows a step, and words a
    number that depends on the data. If you give `step`, or ``projection="check"``, "auto" is 1:
    the paper's algorithm."""

_TRAINING = """max_iter : int, default=300
    The largest number of epochs, or of steps where each step takes all rows.
tol : float or None, default=1e-3
    Stop when no more than this is left to gain. None runs all `max_iter` epochs. Where parameters
    are averaged, `tol` is in nats a row of the penalised objective, for 2 epochs in a row.
    Otherwise it is a share of the loss, for 10 epochs in a row: of the held-out loss with early
    stopping, else of the mean training loss of the last 10 epochs.
early_stopping : bool or float, default=False
    Hold out a tenth (or the given share) of the labelled rows of each class, stop when their loss
    no longer falls, and keep the best model.
class_weight : dict, "balanced" or None, default=None
    The weight of each class, by its label. "balanced" gives all classes the same total weight.
callback : callable or None, default=None
    Called as ``callback(model, record)`` after each epoch. Training stops if it returns True.
n_jobs : int or None, default=None
    Threads that train and predict. None is one thread, -1 is one for each core. Each thread learns
    a part of the rows, and the models of the parts are averaged. The result is close to that of one
    thread, and always the same for the same number of threads. Small data stay on one thread.
    Memory grows with the number of threads: a copy of the model for each, and two more.
device : None, "cpu", "auto", str, torch.device or Device, default=None
    Where arrays are. None and "cpu" are NumPy. "cuda" and other devices of PyTorch train and
    predict there, in double precision unless `Device` says otherwise. "auto" is the GPU, if there
    is one. The fitted model holds NumPy arrays in any case.
engine : None, "dask" or Dask, default=None
    Where `fit` runs. None is this process, on `n_jobs` threads. `Dask(client)` is the workers of a
    cluster, which also read Dask arrays, data frames, series and bags. "dask" is the current
    client, or a local cluster if there is none.
random_state : int, RandomState or None, default=None
    Seed of all random choices. With the same seed and data, the model is the same.
verbose : int, default=0
    1 shows a bar while training takes long, and a line at its end. 2 shows a line for each epoch
    and each candidate. The logger "discem" receives these lines at the level INFO."""

_OF_TABLES = """hide : float, default=0.0
    The largest share of the cells of a row that an epoch hides, so that the model works for any
    subset of the cells. 0 hides none. Not for words.
missing : {"ignore", "informative"}, default="ignore"
    Whether a missing cell is itself a sign of the class. Tables only.
forget : int or None, default=None
    In streams, the number of rows after which older rows count less and less.
unlabelled : label or None, default=None
    A label that means "no label", such as -1. None and NaN always mean that."""

_UNLABELLED = """unlabelled_weight : float or "auto", default="auto"
    The weight of an unlabelled row beside a labelled one. Unlabelled rows are learnt by their NLL.
    "auto" is 1 under NLL. Under a discriminative loss it is small, because such steps would undo
    what the labels taught: 0.001 in `MixtureClassifier`, and in `TopicClassifier` so small that all
    unlabelled rows together weigh 0.005 times as much as the labelled ones. `MultinomialNB` under a
    discriminative loss first learns from the labels, and then takes one step that raises the
    likelihood of all unlabelled rows. There the weight says how large this step is: 0 is no step,
    and 1 gives it as much to say as the labels. "auto" tries 0, 1/2, 1 and 2 on held-out rows.
    `partial_fit` takes no such step."""

_ATTRIBUTES = """mu_, theta_ : dicts of arrays
    The parameters of the model: expected statistics, and natural parameters.
classes_ : array of shape (n_classes,)
class_count_, class_frequency_ : arrays of shape (n_classes,)
    The observed weight of each class, and its share, or the share that `set_class_prior` set.
class_prior_ : array of shape (n_classes,)
    p(y) of the joint. Under NLL it is the frequency of the class. Under a discriminative loss it is
    trained like the other parameters.
temperature_ : float
    The factor of the log-probabilities before they are normalised; see `calibrate`.
n_features_in_, feature_names_in_ : as in scikit-learn
n_iter_ : int
    Number of epochs, or of batches for `partial_fit`.
history_ : list of dicts
    A record for each epoch, or for each of the last 100 batches of a stream. `loss` is the training
    loss; `nll`, `ncll`, `hinge` and `accuracy` stand beside it. All are progressive: rows are
    scored before the model learns them. Under the hinge with several rows a step, `loss` is a soft
    hinge. `step` is the step size, `shortened` the share of steps that were shortened, `seconds`
    the time. With early stopping there are `validation_*`, for words `perplexity`, and for averaged
    parameters the `objective` of the average (mean loss and penalty of a row). `went_back` says
    that an epoch ended above the start, so that training went back and shortened its steps. On
    workers, `parts` is the number of parts of the rows; small partitions are trained together.
stream_ : dict
    Totals of a stream: the number of `batches` and `rows`, the `weight` of the labelled rows,
    `seconds`, and the mean progressive `loss`, `nll`, `ncll`, `hinge` and `accuracy`. Empty if
    there was no `partial_fit`."""


_CV = """cv : None, int, splitter, iterable or array, default=None
    Which rows are held out to choose options by. None holds out a fifth of the rows of each class;
    if that is fewer than 200 rows, it holds out each fifth in turn. A number is a number of folds.
    If rows belong together or follow in time, give a splitter of scikit-learn, pairs of rows to
    train on and rows to hold out, or the group of each row: a group is held out as a whole."""

_SECTIONS = {
    "loss": _LOSS,
    "cv": _CV,
    "of_tables": _OF_TABLES,
    "common": f"{_STEPS}\n{_TRAINING}",
    "training": _TRAINING,
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
