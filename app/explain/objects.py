# SPDX-License-Identifier: Apache-2.0
"""Raw API objects by kind and name, and ways to read a field of one that nobody has checked.

Nothing here raises for an odd object: a field of another type than the API's counts as absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from app.codec.snapshot import JsonObject

DEFAULTED = ("Pod", "PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.k8s.io")
"""Kinds that are in the namespace default where they name none, as everywhere in Muster."""


def kind_of(obj: JsonObject) -> str:
    """`Kind.group` as kubectl writes it; a core kind has no group: `Pod`, `Job.batch`."""
    group, slash, _ = text(obj, "apiVersion").partition("/")
    return f"{text(obj, 'kind')}.{group}" if slash else text(obj, "kind")


class Objects:
    """What was read, indexed. The objects themselves are not to be changed."""

    def __init__(self, items: Iterable[JsonObject] = ()) -> None:
        self._by_kind: defaultdict[str, dict[tuple[str, str], JsonObject]] = defaultdict(dict)
        self._by_owner: dict[str, list[JsonObject]] | None = None
        for item in items:
            kind = kind_of(item)
            where = namespace_of(item) or ("default" if kind in DEFAULTED else "")
            self._by_kind[kind][where, name_of(item)] = item

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """One object; `namespace` is empty for a kind that has none."""
        return self._by_kind[kind].get((namespace, name)) if kind in self._by_kind else None

    def of(self, kind: str, namespace: str | None = None) -> Iterator[JsonObject]:
        """All of a kind, of one namespace or of all."""
        for (where, _), item in self._by_kind.get(kind, {}).items():
            if namespace is None or where == namespace:
                yield item

    def owned_by(self, uid: str) -> list[JsonObject]:
        """Objects with an ownerReference to this UID."""
        if self._by_owner is None:
            self._by_owner = {}
            for items in self._by_kind.values():
                for item in items.values():
                    for owner in maps(item, "metadata", "ownerReferences"):
                        self._by_owner.setdefault(text(owner, "uid"), []).append(item)
        return self._by_owner.get(uid, [])

    def below(self, root: JsonObject) -> Iterator[JsonObject]:
        """What an object owns, and what that owns, each once."""
        todo, seen = [root], {uid_of(root)}
        while todo:
            for child in self.owned_by(uid_of(todo.pop())):
                if uid_of(child) not in seen:
                    seen.add(uid_of(child))
                    todo.append(child)
                    yield child


def named(obj: JsonObject) -> str:
    """As kubectl would name it: `node/n1`, `pod/team-a/w0`."""
    parts = (text(obj, "kind").lower(), namespace_of(obj), name_of(obj))
    return "/".join(part for part in parts if part)


def name_of(obj: JsonObject) -> str:
    """metadata.name."""
    return text(obj, "metadata", "name")


def namespace_of(obj: JsonObject) -> str:
    """metadata.namespace; empty for a kind that has none."""
    return text(obj, "metadata", "namespace")


def uid_of(obj: JsonObject) -> str:
    """metadata.uid."""
    return text(obj, "metadata", "uid")


def dig(obj: object, *path: str) -> Any:
    """The value at a path of keys; None when any of it is absent."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def text(obj: object, *path: str) -> str:
    """A string; empty when absent."""
    value = dig(obj, *path)
    return value if isinstance(value, str) else ""


def number(obj: object, *path: str) -> int | None:
    """An integer; None when absent."""
    value = dig(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(obj: object, *path: str) -> JsonObject:
    """A map; empty when absent."""
    value = dig(obj, *path)
    return value if isinstance(value, dict) else {}


def maps(obj: object, *path: str) -> list[JsonObject]:
    """A list of maps; what is no map is left out."""
    value = dig(obj, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
