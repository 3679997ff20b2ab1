"""Node merging (Algorithm 3, Eq. 7 and 8): which factors to merge, as a minimum spanning tree over components.

The cost of joining two components is the smallest Euclidean distance between the bias features of a
factor of one and a factor of the other. Borůvka's rounds find the tree without looking at all pairs of
components: every group takes its cheapest link to another group, found in a k-d tree (`elute.repair.kdtree`),
and the groups at least halve. Two facts keep it cheap:

- Factors with equal features cost nothing to merge. A star from the smallest factor of a location holds
  all such links that the tree can need, and a location then counts as one point.
- A point's distance to the nearest point of another group never shrinks as groups grow. So a neighbour
  found once is kept until it joins the own group, and a point is searched again only if what is known
  of it could still beat the best link of its group.

Pairs are compared by (squared distance, smaller factor, larger factor). That order is total, so the tree
is unique: ties and the order of the search change nothing. `elute.repair.merge_plan` makes a plan of the pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.unionfind import find_roots, join_edges, singletons
from elute.repair.kdtree import build_tree, find_cheapest_links

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def find_minimum_merges(features: Floats, component: NDArray[np.integer]) -> tuple[Ints, Floats]:
    """The K - 1 pairs of factors (a < b) that join K components at least total cost, and their costs.

    `features`: one row a factor, finite. Pairs come by (squared cost, a, b).
    """
    if not np.isfinite(features).all():
        raise ValueError("bias features must be finite")
    codes, member = np.unique(component, return_inverse=True)
    parent = singletons(len(codes))
    _, name, location = np.unique(features, axis=0, return_index=True, return_inverse=True)
    location = location.reshape(-1)

    order = np.lexsort((np.arange(len(location)), name[location]))
    hub = name[location][order]
    free = join_edges(parent, member[hub], member[order])
    pairs = [np.column_stack((hub[free], order[free]))]
    squares = [np.zeros(int(free.sum()))]

    tree = build_tree(features[name], name)
    known = np.zeros(len(name))
    neighbour = np.full(len(name), -1)
    missing = len(codes) - 1 - len(squares[0])
    while missing:
        group = find_roots(parent)[member[tree.names]]
        d, i, j = find_cheapest_links(tree, group, len(codes), known, neighbour)
        chosen = np.flatnonzero(i >= 0)
        a, b = tree.names[i[chosen]], tree.names[j[chosen]]
        joins = join_edges(parent, member[a], member[b])
        pairs.append(np.column_stack((a, b))[joins])
        squares.append(d[chosen][joins])
        missing -= int(joins.sum())
    return _sort_pairs(np.concatenate(pairs), np.concatenate(squares))


def _sort_pairs(pairs: Ints, squares: Floats) -> tuple[Ints, Floats]:
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], squares))
    return pairs[order], np.sqrt(squares[order])
