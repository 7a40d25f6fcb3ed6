Cvb0 = Gibbs = Topics = object
LEAST_ALPHA = 1e-6
MOST_SWEEPS = 10_000
collect_topics = n_topics = proportions = start_topics = word_distributions = None
