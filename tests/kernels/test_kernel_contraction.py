"""Graph contraction against its definition, graph by graph."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.apps.mirrors import contract
from likewise.errors import ParameterError


def naive(nodes, links, same, similar, least):
    """Fold, relabel, compare all with all, and again: sets of labels, each the lowest node of its class."""
    label, rounds = list(range(nodes)), []

    def merge(groups, by):
        for group in groups:
            for node in range(nodes):
                if label[node] in group:
                    label[node] = min(group)
        rounds.append((by, sum(len(group) - 1 for group in groups)))

    given_groups = {}
    for node, number in enumerate(same):
        if number >= 0:
            given_groups.setdefault(number, set()).add(node)
    if any(len(group) > 1 for group in given_groups.values()):
        merge([group for group in given_groups.values() if len(group) > 1], "given")
    while True:
        outlinks = {}
        for source, target in links:
            if label[source] != label[target]:
                outlinks.setdefault(label[source], set()).add(label[target])
        outlinks = {node: frozenset(links) for node, links in sorted(outlinks.items()) if len(links) >= least}
        equal = {}
        for node, links_there in outlinks.items():
            equal.setdefault(links_there, set()).add(node)
        groups = [group for group in equal.values() if len(group) > 1]
        if groups:
            merge(groups, "equal outlinks")
            continue
        taken, groups = set(), []
        for node, mine in outlinks.items():
            if node in taken or similar == 1:
                continue
            alike = {
                other
                for other, theirs in outlinks.items()
                if other > node and other not in taken and len(mine & theirs) / len(mine | theirs) >= similar
            }
            if alike:
                groups.append({node} | alike)
                taken |= alike
        if not groups:
            return label, rounds
        merge(groups, "similar outlinks")


@st.composite
def graphs(draw):
    """A graph, much of it there twice, and some nodes that are one from the start."""
    nodes = draw(st.integers(1, 16))
    node = st.integers(0, nodes - 1)
    links = draw(st.lists(st.tuples(node, node), max_size=40))
    links += [(nodes - 1 - a, nodes - 1 - b) for a, b in links[: draw(st.integers(0, 40))]]
    same = [draw(st.sampled_from([-1, -1, min(i, nodes - 1 - i)])) for i in range(nodes)]
    return nodes, links, same


CHAIN = [(0, 0), (0, 2), (0, 8), (3, 7), (7, 9), (9, 4), (11, 11), (11, 9), (11, 3), (8, 4), (4, 2), (2, 7)]
"""Links by which a class becomes equal to two others, of which one has been found before."""


@example((12, CHAIN, [-1, -1, 2, -1, -1, -1, -1, -1, -1, 2, -1, -1]), 0.6, 1)
@given(graphs(), st.sampled_from([1.0, 0.9, 0.75, 0.6, 0.5, 0.3]), st.integers(1, 3))
def test_it_folds_what_the_definition_folds(graph, similar, least):
    nodes, links, same = graph
    source, target = [a for a, _ in links], [b for _, b in links]
    done = contract(source, target, nodes, same=same, similar=similar, least=least)
    label, rounds = naive(nodes, links, same, similar, least)
    assert done.folded.tolist() == label
    assert [(one.by, one.folded) for one in done.rounds] == rounds
    assert done.links == len({link for link in links if link[0] != link[1]})


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_links_and_their_repetition_do_not_matter(graph, random):
    nodes, links, same = graph
    first = contract([a for a, _ in links], [b for _, b in links], nodes, same=same, similar=0.6, least=1)
    links = links.copy()
    random.shuffle(links)
    again = contract([a for a, _ in links], [b for _, b in links], nodes, same=same, similar=0.6, least=1)
    assert first.folded.tolist() == again.folded.tolist()
    assert first.rounds == again.rounds
    links += links[: len(links) // 2]
    again = contract([a for a, _ in links], [b for _, b in links], nodes, same=same, similar=0.6, least=1)
    assert first.folded.tolist() == again.folded.tolist()
    assert [(one.by, one.folded) for one in first.rounds] == [(one.by, one.folded) for one in again.rounds]


def tree(depth, width, base):
    """Links of a tree whose nodes are numbered level by level from `base`; also its levels."""
    levels, number = [[base]], base + 1
    links = []
    for _ in range(depth):
        level = []
        for parent in levels[-1]:
            children = list(range(number, number + width))
            links += [(parent, child) for child in children]
            level += children
            number += width
        levels.append(level)
    return links, levels


def test_equal_leaves_fold_a_mirrored_site_up_to_its_root():
    """A level a round: the leaves are equal, so their parents become so, then theirs."""
    links, levels = tree(4, 3, 0)
    nodes = 1 + levels[-1][-1]
    there, _ = tree(4, 3, nodes)
    links += there
    leaves = levels[-1]
    same = [-1] * (2 * nodes)
    for leaf in leaves:
        same[leaf] = same[leaf + nodes] = leaf
    done = contract([a for a, _ in links], [b for _, b in links], same=same, similar=1.0)
    assert [(one.by, one.folded) for one in done.rounds] == [
        ("given", 81), ("equal outlinks", 27), ("equal outlinks", 9), ("equal outlinks", 3), ("equal outlinks", 1),
    ]  # fmt: skip
    assert done.folded.tolist() == [*range(nodes), *range(nodes)]
    assert [one.looked for one in done.rounds[1:]] == [80, 9 * 1, 3, 1], "only parents of what was folded"


def test_one_different_link_stops_a_cascade_of_equal_ones_but_not_of_similar_ones():
    links, levels = tree(2, 4, 0)
    nodes = 1 + levels[-1][-1]
    there, _ = tree(2, 4, nodes)
    links += [*there, (1 + nodes, 2 * nodes)]
    same = [-1] * (2 * nodes + 1)
    for leaf in levels[-1]:
        same[leaf] = same[leaf + nodes] = leaf
    ends = [a for a, _ in links], [b for _, b in links]
    strict = contract(*ends, same=same, similar=1.0)
    assert [one.folded for one in strict.rounds] == [16, 3]
    loose = contract(*ends, same=same, similar=0.8)
    assert [(one.by[:5], one.folded) for one in loose.rounds] == [
        ("given", 16),
        ("equal", 3),
        ("simil", 1),
        ("equal", 1),
    ]


def test_pages_with_few_links_are_not_one_for_that():
    """Fifty pages of a host link to its home page and to nothing else."""
    source, target = list(range(1, 51)), [0] * 50
    assert not contract(source, target).rounds
    assert contract(source, target, least=1).rounds[0].folded == 49


def test_links_on_most_pages_of_a_host_do_not_count():
    """Thirty pages with the same four links of the menu, and one of their own."""
    menu, pages = range(4), range(4, 34)
    links = [(page, item) for page in pages for item in menu] + [(page, 34 + page) for page in pages]
    ends = [a for a, _ in links], [b for _, b in links]
    nodes = 80
    assert contract(*ends, nodes, similar=0.6).rounds[0].folded == 29
    with_hosts = contract(*ends, nodes, similar=0.6, host=[0] * nodes)
    assert not with_hosts.rounds
    assert with_hosts.template_links == 120
    few = contract(*ends, nodes, similar=0.6, host=[page % 2 for page in range(nodes)])
    assert few.template_links == 0, "no host has twenty pages with links"


def test_a_crowd_is_cut_short_and_that_is_told():
    rng = np.random.default_rng(1)
    rows = np.stack([rng.permutation(12)[:6] for _ in range(300)])
    source = np.repeat(np.arange(12, 312), 6)
    done = contract(source, rows.ravel(), similar=0.95, common=3)
    assert done.crowded > 0
    assert contract(source, rows.ravel(), similar=0.95).crowded == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"similar": 0}, "'similar' parameter of contract must be in"),
        ({"least": 0}, "'least'"),
        ({"template": 2}, "'template'"),
        ({"same": [0]}, "'same'.*one entry per node, 2"),
        ({"host": [0] * 3}, "'host'"),
        ({"nodes": 1}, "from 0 to 0"),
    ],
)
def test_wrong_parameters(words, message):
    with pytest.raises(ParameterError, match=message):
        contract([0], [1], **words)
    with pytest.raises(ParameterError, match="as long as 'source'"):
        contract([0, 1], [1])


def test_no_links():
    done = contract([], [], 3, same=[5, -1, 5])
    assert done.folded.tolist() == [0, 1, 0]
    assert contract([], []).folded.tolist() == []
