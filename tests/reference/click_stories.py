"""Session click models told plainly: a story for every model, from its parameters as plain numbers.

The hidden decisions are told one by one, as in `plain_users`; networks are written out in plain loops. `params` are
numpy arrays in the nesting that the models have.
"""

from __future__ import annotations

import math

import numpy as np

from reference import plain_users as plain


def sigmoid(x):
    return 1 / (1 + math.exp(-float(x)))


def of_documents(embedding, docs):
    """Probabilities of an embedding of single logits."""
    return [sigmoid(embedding["bias"][0] + embedding["deviation"][d][0]) for d in docs]


def dctr(params, query, docs):
    rates = of_documents(params["rate"], docs)
    return lambda pick: [k for k, r in enumerate(rates) if plain.happens(pick, r)]


def rdctr(params, query, docs):
    rates = [sigmoid(params["rate"][d][k]) for k, d in enumerate(docs)]
    return lambda pick: [k for k, r in enumerate(rates) if plain.happens(pick, r)]


def pbm(params, query, docs):
    o = [sigmoid(x) for x in params["examination"]]
    return plain.position_based(of_documents(params["attraction"], docs), o, 1.0)


def ubm(params, query, docs):
    ranks = len(docs)
    flat = [sigmoid(x) for x in params["examination"]]
    rows, start = [], 0
    for k in range(1, ranks + 1):
        rows.append(flat[start : start + k])
        start += k
    return plain.browsing(of_documents(params["attraction"], docs), rows)


def cascade(params, query, docs):
    return plain.cascade(of_documents(params["attraction"], docs))


def dcm(params, query, docs):
    goes_on = [sigmoid(x) for x in params["continuation"]]
    return plain.dependent_click(of_documents(params["attraction"], docs), goes_on)


def ccm(params, query, docs):
    relevance = of_documents(params["attraction"], docs)
    after_none, after_irrelevant, after_relevant = (sigmoid(x) for x in params["continuation"])

    def story(pick):
        clicked = []
        for k, r in enumerate(relevance):
            if plain.happens(pick, r):
                clicked.append(k)
                on = after_relevant if plain.happens(pick, r) else after_irrelevant
            else:
                on = after_none
            if not plain.happens(pick, on):
                break
        return clicked

    return story


def sdbn(params, query, docs):
    attraction, satisfaction = (of_documents(params[name], docs) for name in ("attraction", "satisfaction"))
    return plain.dynamic_bayesian(attraction, satisfaction, 1.0)


def dbn(params, query, docs):
    attraction, satisfaction = (of_documents(params[name], docs) for name in ("attraction", "satisfaction"))
    return plain.dynamic_bayesian(attraction, satisfaction, sigmoid(params["continuation"]))


def reading(name, params, docs):
    """The story of a chain that ends with what was read as well: ("read", k) and ("click", k)."""
    attraction = of_documents(params["attraction"], docs)

    def goes_on(pick, k, clicked):
        if name == "cascade":
            return not clicked
        if name == "dcm":
            return plain.happens(pick, sigmoid(params["continuation"][k])) if clicked else True
        if name == "ccm":
            none, irrelevant, relevant = (sigmoid(x) for x in params["continuation"])
            if not clicked:
                return plain.happens(pick, none)
            return plain.happens(pick, relevant if plain.happens(pick, attraction[k]) else irrelevant)
        if clicked and plain.happens(pick, of_documents(params["satisfaction"], docs)[k]):
            return False
        return name == "sdbn" or plain.happens(pick, sigmoid(params["continuation"]))

    def story(pick):
        told = []
        for k, a in enumerate(attraction):
            told.append(("read", k))
            clicked = plain.happens(pick, a)
            if clicked:
                told.append(("click", k))
            if not goes_on(pick, k, clicked):
                break
        return told

    return story


def _gru(weights, state, x):
    size = len(state)
    gates = x @ weights["input"] + weights["input_bias"]
    own = state @ weights["state"] + weights["bias"]
    out = np.zeros(size)
    for i in range(size):
        reset = sigmoid(gates[i] + own[i])
        update = sigmoid(gates[size + i] + own[size + i])
        new = math.tanh(gates[2 * size + i] + reset * own[2 * size + i])
        out[i] = (1 - update) * new + update * state[i]
    return out


def _networked(params, docs, inputs, probability):
    def story(pick):
        state, above, clicked = np.zeros(len(params["network"]["state"])), 0, []
        for k in range(len(docs)):
            state = _gru(params["network"], state, np.concatenate((*inputs(k), params["click"][above])))
            output = sigmoid(state @ params["output"]["weight"][:, 0] + params["output"]["bias"][0])
            above = 1
            if plain.happens(pick, output * probability(k)):
                clicked.append(k)
                above = 2
        return clicked

    return story


def ncm(params, query, docs):
    vectors = params["document"]["bias"] + params["document"]["deviation"]
    return _networked(params, docs, lambda k: (params["query"][query], vectors[docs[k]]), lambda k: 1.0)


def cacm(params, query, docs):
    relevance = of_documents(params["relevance"], docs)
    return _networked(params, docs, lambda k: (params["rank"][k],), lambda k: relevance[k])


STORIES = {
    "dctr": dctr,
    "rdctr": rdctr,
    "pbm": pbm,
    "cascade": cascade,
    "dcm": dcm,
    "ccm": ccm,
    "ubm": ubm,
    "sdbn": sdbn,
    "dbn": dbn,
    "ncm": ncm,
    "cacm": cacm,
}
