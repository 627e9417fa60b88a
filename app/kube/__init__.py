# SPDX-License-Identifier: Apache-2.0
"""All Kubernetes I/O: follow objects, bind, admit, tell people. The only importer of `kubernetes`."""
