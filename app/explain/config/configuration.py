# SPDX-License-Identifier: Apache-2.0
"""A KubeSchedulerConfiguration as findings read it, with the settings of the Muster that it must agree with.

Knows kube-scheduler's defaults for what is not set. Judges nothing.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from app.codec.snapshot import JsonObject
from app.explain.config.duration import seconds
from app.explain.finding import Evidence
from app.explain.objects import dig, maps, text

KIND: Final = "KubeSchedulerConfiguration"
VERSION: Final = "kubescheduler.config.k8s.io/v1"
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
"""As Muster serves them; the field is `filterVerb` and so on."""
DEFAULT_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_SCHEDULER: Final = "default-scheduler"


class Muster(msgspec.Struct, frozen=True):
    """Settings of Muster that the scheduler's configuration must agree with; names as in `Settings`.

    `elects`: Muster acts while its scheduler holds the Lease. `most_hold_seconds` is the longest that a
    PodGroup may ask for.
    """

    scheduler: str
    port: int
    namespace: str
    lease: str
    elects: bool
    hold_seconds: float
    gang_seconds: float
    most_hold_seconds: float
    nominate_from_nodes: int


class Stanza(msgspec.Struct, frozen=True):
    """One entry of `extenders`."""

    at: int
    raw: JsonObject

    @property
    def where(self) -> str:
        """`extenders[0]`."""
        return f"extenders[{self.at}]"

    @property
    def verbs(self) -> dict[str, str]:
        """What is called, by the name of the verb; those that are set."""
        found = {verb: text(self.raw, f"{verb}Verb") for verb in VERBS}
        return {verb: path for verb, path in found.items() if path}

    @property
    def prefix(self) -> str:
        """urlPrefix as it is written."""
        return text(self.raw, "urlPrefix")

    @property
    def url(self) -> SplitResult:
        """Its parts; what has no scheme is read as host and port."""
        try:
            return urlsplit(self.prefix if "://" in self.prefix else f"//{self.prefix}")
        except ValueError:
            return urlsplit("")

    @property
    def host(self) -> str:
        """Lower case; empty if there is none."""
        return self.url.hostname or ""

    @property
    def port(self) -> int | None:
        """Given, or the scheme's own; None if it is no number."""
        try:
            given = self.url.port
        except ValueError:
            return None
        return given or {"http": 80, "https": 443}.get(self.url.scheme)

    @property
    def loopback(self) -> bool:
        """Whether calls stay inside the pod."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def ignorable(self) -> bool:
        """Whether kube-scheduler goes on without an answer."""
        return self.raw.get("ignorable") is True

    @property
    def timeout_seconds(self) -> float:
        """httpTimeout, in which nothing and zero mean the default."""
        return seconds(self.raw.get("httpTimeout")) or DEFAULT_TIMEOUT_SECONDS

    def saw(self, field: str, default: object = None) -> Evidence:
        """A field of it as it was found."""
        return _saw(f"{self.where}.{field}", self.raw.get(field), default)


class Profile(msgspec.Struct, frozen=True):
    """One entry of `profiles`. `name` is its schedulerName."""

    at: int
    raw: JsonObject
    name: str

    @property
    def where(self) -> str:
        """`profiles[0]`."""
        return f"profiles[{self.at}]"

    def names(self, point: str, which: str) -> set[str]:
        """Plugins that are `enabled` or `disabled` at an extension point."""
        return {text(plugin, "name") for plugin in maps(self.raw, "plugins", point, which)}

    def off(self, plugin: str, point: str) -> bool:
        """Whether a default plugin does not run at this point."""
        if plugin in self.names(point, "enabled"):
            return False
        if self.names(point, "disabled") & {plugin, "*"}:
            return True
        everywhere = self.names("multiPoint", "disabled") & {plugin, "*"}
        return bool(everywhere) and plugin not in self.names("multiPoint", "enabled")


class Configuration(msgspec.Struct, frozen=True):
    """`raw` is the object, `source` how evidence names it. `replicas` is None when not known."""

    raw: JsonObject
    muster: Muster
    source: str = KIND
    replicas: int | None = None

    @property
    def extenders(self) -> list[Stanza]:
        """All, whoever is behind them."""
        return [Stanza(at, raw) for at, raw in enumerate(maps(self.raw, "extenders"))]

    @property
    def stanzas(self) -> list[Stanza]:
        """Those of Muster: at its port or under its name; where there is none, those on loopback."""
        named = [one for one in self.extenders if one.port == self.muster.port or "muster" in one.host]
        return named or [one for one in self.extenders if one.loopback]

    @property
    def strangers(self) -> list[Stanza]:
        """Extenders that are not Muster."""
        ours = {stanza.at for stanza in self.stanzas}
        return [stanza for stanza in self.extenders if stanza.at not in ours]

    def calling(self, *verbs: str) -> list[Stanza]:
        """Stanzas of Muster that call any of these verbs."""
        return [stanza for stanza in self.stanzas if stanza.verbs.keys() & set(verbs)]

    @property
    def profiles(self) -> list[Profile]:
        """As kube-scheduler completes them: a single one without a name is the default scheduler's."""
        found = maps(self.raw, "profiles") or [{}]
        fallback = DEFAULT_SCHEDULER if len(found) == 1 else ""
        return [Profile(at, raw, text(raw, "schedulerName") or fallback) for at, raw in enumerate(found)]

    @property
    def ours(self) -> Profile | None:
        """The profile whose pods Muster places."""
        return next((one for one in self.profiles if one.name == self.muster.scheduler), None)

    def value(self, *path: str, default: Any) -> Any:
        """A value, or kube-scheduler's default for it when it is not set or of another type."""
        found = dig(self.raw, *path)
        wanted = (int, float) if isinstance(default, float) else type(default)
        odd = isinstance(found, bool) and not isinstance(default, bool)
        return found if isinstance(found, wanted) and not odd else default

    def saw(self, *path: str, default: object = None) -> Evidence:
        """A field as it was found, in the form of evidence."""
        return self.cite(_saw(".".join(path), dig(self.raw, *path), default))

    def cite(self, evidence: Evidence) -> Evidence:
        """The same, with the name of this configuration."""
        return Evidence(self.source, evidence.field, evidence.value)


def _saw(field: str, value: object, default: object) -> Evidence:
    if value is not None:
        return Evidence(KIND, field, shown(value))
    return Evidence(KIND, field, "not set" if default is None else f"not set; {shown(default)}")


def shown(value: object) -> str:
    """A value as JSON writes it, strings bare."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        names = (text(item, "name") if isinstance(item, dict) else shown(item) for item in value)
        return ", ".join(names)
    return "{...}" if isinstance(value, dict) else f"{value:g}" if isinstance(value, float) else str(value)
