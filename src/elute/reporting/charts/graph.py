"""The identifiability graph in a form that can be drawn: every factor a node where they are few, else groups of them.

Groups are cut from a spanning tree of the strongest links (those that most items make), so that each holds factors
that are connected among themselves. All of a group's factors lie in one component: what is apart in the log is apart in
the picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from elute.cells.counts import Counts
from elute.identify.components import Components

Ints = NDArray[np.int64]

MOST_NODES = 120
"""Factors that are drawn one by one."""

GROUPS = 60
"""About how many groups more factors are put in."""

_COMPONENTS = 40
"""Components that get groups of their own; the rest share one."""

MOST_LINKS = 3
"""Links that are drawn, for each node: more hide each other."""

_FEW_LINKS = 60


class GraphLinks(NamedTuple):
    """Pairs of nodes, a < b, and the items shown under both."""

    a: Ints
    b: Ints
    items: Ints


class Graph(NamedTuple):
    """`node` of every factor, numbered without gaps; `component` by node, -1 for the one that stands for all small
    components. `all_links`: how many there are; `links` are the strongest."""

    node: Ints
    component: Ints
    links: GraphLinks
    all_links: int

    @property
    def nodes(self) -> int:
        return len(self.component)

    @property
    def is_grouped(self) -> bool:
        return len(self.node) > self.nodes


def build_graph(counts: Counts, found: Components) -> Graph:
    """The graph of a log's factors."""
    few = counts.n_factors <= MOST_NODES
    node = np.arange(counts.n_factors) if few else group_factors(find_strongest(build_stars(counts)), found)
    component = np.zeros(int(node.max()) + 1, np.int64)
    component[node] = found.of_factor
    if not few:
        component[node[found.of_factor >= _COMPONENTS]] = -1
    links = count_shared_items(counts, node)
    return Graph(node, component, _keep_strongest(links, len(component)), len(links.a))


def count_shared_items(counts: Counts, node: Ints) -> GraphLinks:
    """How many items every two nodes share: the ones of WᵀW, with W the items' nodes."""
    n = int(node.max()) + 1
    cells = (np.ones(counts.n_cells, np.int32), node[counts.factor], counts.offsets.copy())
    shown = csr_array(cells, shape=(counts.n_items, n))
    shown.sum_duplicates()
    shown.data[:] = 1
    both = coo_array(shown.T @ shown)
    upper = both.row < both.col
    order = np.lexsort((both.col[upper], both.row[upper]))
    a, b, items = (np.asarray(part)[upper][order].astype(np.int64) for part in (both.row, both.col, both.data))
    return GraphLinks(a, b, items)


def build_stars(counts: Counts) -> csr_array:
    """For every item a link from the factor it was shown under most to each other one, added up over items. They
    connect what the item connects, and no clique is formed: a thousand factors are a thousand links."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    most = np.maximum.reduceat(counts.impressions, counts.offsets[:-1])
    at = np.flatnonzero(counts.impressions == most[item])
    hub = counts.factor[at[np.unique(item[at], return_index=True)[1]]][item]
    off = hub != counts.factor
    ends = np.minimum(hub, counts.factor)[off], np.maximum(hub, counts.factor)[off]
    out = csr_array(coo_array((np.ones(int(off.sum())), ends), shape=(counts.n_factors, counts.n_factors)))
    out.sum_duplicates()
    return out


def find_strongest(links: csr_array) -> csr_array:
    """The spanning forest of the links that most items make; its values are those numbers."""
    inverse = links.copy()
    inverse.data = 1.0 / inverse.data
    # scipy before 1.17.1 refuses wider indices here
    inverse.indices, inverse.indptr = inverse.indices.astype(np.int32), inverse.indptr.astype(np.int32)
    tree = csr_array(minimum_spanning_tree(inverse))
    tree.data = np.rint(1.0 / tree.data)
    return tree


def group_factors(tree: csr_array, found: Components) -> Ints:
    """A group for every factor: subtrees of about the same size, small components whole, and the smallest together."""
    n = tree.shape[0]
    size = -(-n // GROUPS)
    group = np.full(n, -1, np.int64)
    number = 0
    both = csr_array(tree + tree.T)
    for part in range(min(len(found), _COMPONENTS)):
        root = int(np.flatnonzero(found.of_factor == part)[0])
        order, before = breadth_first_order(both, root, directed=False)
        for cut in _cut_tree(order, before, size):
            group[cut] = number
            number += 1
    group[group < 0] = number
    return group


def _cut_tree(order: NDArray[np.int32], before: NDArray[np.int32], size: int) -> list[list[int]]:
    """Split a tree, given by nodes in order from its root and the node before each, into connected parts of at least
    `size` nodes; the last, with the root, may be smaller."""
    waiting: dict[int, list[int]] = {}
    parts = []
    for node in order[::-1].tolist():
        own = [node, *waiting.pop(node, [])]
        if len(own) >= size or node == order[0]:
            parts.append(own)
        else:
            waiting.setdefault(int(before[node]), []).extend(own)
    return parts


def _keep_strongest(links: GraphLinks, nodes: int) -> GraphLinks:
    """The strongest links, and always those that hold the graph together."""
    most = max(MOST_LINKS * nodes, _FEW_LINKS)
    if len(links.a) <= most:
        return links
    weight = csr_array(coo_array((links.items.astype(np.float64), (links.a, links.b)), shape=(nodes, nodes)))
    tree = find_strongest(weight).tocoo()
    needed = set(zip(tree.row.tolist(), tree.col.tolist(), strict=True))
    order = np.argsort(-links.items, kind="stable")
    held = np.array([(a, b) in needed for a, b in zip(links.a.tolist(), links.b.tolist(), strict=True)])
    keep = held.copy()
    keep[order[: max(most - int(held.sum()), 0)]] = True
    return GraphLinks(links.a[keep], links.b[keep], links.items[keep])
