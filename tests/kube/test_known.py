# SPDX-License-Identifier: Apache-2.0
"""The difference between what is known and what the server says, for any history (hypothesis)."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.kube.known import Identity, Known

Step = tuple[str, int, bool]


class Server:
    """A history of one namespace: what a true observer would know."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, tuple[str, int]] = {}

    def step(self, kind: str, slot: int) -> tuple[str, Raw, Identity] | None:
        name = f"o{slot}"
        self.version += 1
        if kind == "delete":
            if name not in self.objects:
                return None
            uid, _ = self.objects.pop(name)
        elif name in self.objects:
            uid = self.objects[name][0]
            self.objects[name] = (uid, self.version)
        else:
            uid = f"u{self.version}"
            self.objects[name] = (uid, self.version)
        return kind, *_object(name, uid, self.version)


def _object(name: str, uid: str, version: int) -> tuple[Raw, Identity]:
    meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return Raw(msgspec.json.encode({"metadata": meta})), Identity(name, "ns", uid, str(version))


def _decode(raw: bytes | Raw) -> tuple[str, str]:
    meta = msgspec.json.decode(raw)["metadata"]
    return meta["name"], meta["uid"]


steps = st.lists(
    st.tuples(st.sampled_from(["set", "set", "delete", "list"]), st.integers(0, 3), st.booleans()),
    max_size=40,
)


@given(steps)
def test_after_a_list_the_picture_is_the_servers_whatever_was_missed(history: list[Step]) -> None:
    server = Server()
    told: dict[str, str] = {}
    known = Known(_decode, bad=lambda key, error: None)

    def tell(updates: list[tuple[tuple[str, str], bool]]) -> None:
        for (name, uid), gone in updates:
            if gone:
                assert told.pop(name) == uid
            else:
                assert told.get(name, uid) == uid, "a successor is told before its predecessor is gone"
                told[name] = uid

    def list_all() -> None:
        known.begin_list()
        for name, (uid, version) in server.objects.items():
            tell(known.listed(_object(name, uid, version)[0]))
        tell(list(known.end_list()))
        assert told == {name: uid for name, (uid, _) in server.objects.items()}

    old: list[tuple[str, Raw, Identity]] = []
    for kind, slot, delivered in history:
        if kind == "list":
            list_all()
            before = dict(told)
            for event, raw, identity in old:  # a watch that repeats the past changes nothing
                tell(known.deleted(identity, raw) if event == "delete" else known.changed(identity, raw))
            assert told == before
        elif (happened := server.step(kind, slot)) is not None:
            old.append(happened)
            if delivered:
                event, raw, identity = happened
                tell(known.deleted(identity, raw) if event == "delete" else known.changed(identity, raw))
    list_all()


def test_a_restored_etcd_is_believed() -> None:
    known = Known(_decode, bad=lambda key, error: None)
    raw, identity = _object("o", "u", 900)
    known.changed(identity, raw)
    known.begin_list()
    assert known.listed(_object("o", "u", 40)[0]) == [(("o", "u"), False)]
    assert list(known.end_list()) == []
