# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as a tree. "Does not fit" is never here: that is a `Refusal`, a value.

MusterError
├── InputError            the caller's data is unusable; repeating the call will not help
│   └── QuantityError     a resource quantity that Kubernetes would not accept
└── ApiError              the Kubernetes API did not do it; see `retry`
"""

from __future__ import annotations


class MusterError(Exception):
    """Root of the tree. `str()` is one line for people: what, where, what to do."""


class InputError(MusterError):
    """Unusable input. `field` names the place, as a JSON path."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class QuantityError(InputError):
    """A quantity that is not of the grammar of apimachinery's `resource.Quantity`."""


class ApiError(MusterError):
    """A call to the Kubernetes API that failed. `status` is the HTTP code, 0 when no answer came."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def retry(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500
