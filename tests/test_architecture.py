"""No two modules import each other, whichever way round and not even for their types."""

import grimp


def circles(imported):
    """Return the sets of modules that reach one another by imports (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found = set()

    def visit(module):
        order[module] = low[module] = len(order)
        open_.append(module)
        for other in sorted(imported[module]):
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in open_:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            at = open_.index(module)
            found.add(frozenset(open_[at:]))
            del open_[at:]

    for module in imported:
        if module not in order:
            visit(module)
    return {circle for circle in found if len(circle) > 1}


def test_a_circle_is_found_however_long():
    imported = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles(imported) == {frozenset("abc")}


def test_no_modules_import_one_another():
    graph = grimp.build_graph("safetydrift", cache_dir=None, exclude_type_checking_imports=False)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 200
    assert circles(imported) == set()
