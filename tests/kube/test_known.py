# SPDX-License-Identifier: Apache-2.0
"""The difference between what is known and what the server says, for any history (hypothesis)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.codec.wire import Header, Identity
from app.kube.known import Known
from app.kube.wire import Unreadable

Step = tuple[str, int, bool]


class Server:
    """A history of one namespace: what a true observer would know."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, tuple[str, int]] = {}

    def step(self, kind: str, slot: int) -> tuple[str, Header] | None:
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
        return kind, _object(name, uid, self.version)


def _object(name: str, uid: str, version: int) -> Header:
    return Header(Identity(name, "ns", uid, str(version)))


def _value(obj: Header) -> tuple[str, str]:
    return obj.metadata.name, obj.metadata.uid


steps = st.lists(
    st.tuples(st.sampled_from(["set", "set", "delete", "list"]), st.integers(0, 3), st.booleans()),
    max_size=40,
)


@given(steps)
def test_after_a_list_the_picture_is_the_servers_whatever_was_missed(history: list[Step]) -> None:
    server = Server()
    told: dict[str, str] = {}
    known = Known(_value, bad=lambda key, error: None)

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
            tell(known.listed(_object(name, uid, version)))
        tell(list(known.end_list()))
        assert told == {name: uid for name, (uid, _) in server.objects.items()}

    old: list[tuple[str, Header]] = []
    for kind, slot, delivered in history:
        if kind == "list":
            list_all()
            before = dict(told)
            for event, obj in old:  # a watch that repeats the past changes nothing
                tell(known.deleted(obj) if event == "delete" else known.changed(obj))
            assert told == before
        elif (happened := server.step(kind, slot)) is not None:
            old.append(happened)
            if delivered:
                event, obj = happened
                tell(known.deleted(obj) if event == "delete" else known.changed(obj))
    list_all()


def test_a_restored_etcd_is_believed() -> None:
    known = Known(_version, bad=lambda key, error: None)
    known.changed(_object("o", "u", 900))
    known.begin_list()
    assert known.listed(_object("o", "u", 40)) == [(40, False)]
    assert list(known.end_list()) == []


def test_a_state_that_says_nothing_new_is_not_told_unless_all_are() -> None:
    known = Known(_value, bad=lambda key, error: None)
    assert known.changed(_object("o", "u", 1)) == [(("o", "u"), False)]
    assert known.changed(_object("o", "u", 2)) == []
    assert known.deleted(_object("o", "v", 3)) == [], "another of that name"
    assert known.changed(_object("o", "u", 2)) == [], "the version has moved on"
    known.begin_list()
    assert known.listed(_object("o", "u", 2)) == [], "nor by a list"
    known.repeat = True
    assert known.listed(_object("o", "u", 2)) == [(("o", "u"), False)]
    assert known.changed(_object("o", "u", 4)) == [(("o", "u"), False)]


def test_an_object_that_cannot_be_read_stays_as_it_was() -> None:
    told: list[str] = []
    known = Known(_value, bad=lambda key, error: told.append(key))
    known.changed(_object("o", "u", 1))
    bad = Unreadable(Identity("o", "ns", "u", "2"), ValueError("no"))
    known.begin_list()
    assert known.listed(bad) == known.changed(bad) == list(known.end_list()) == []
    assert (known.skipped, told, len(known)) == (2, ["ns/o"], 1)


def _version(obj: Header) -> int:
    return obj.metadata.version
