# SPDX-License-Identifier: Apache-2.0
"""What Muster is measured on without a control plane: objects, bodies, and servers to stand beside it."""
