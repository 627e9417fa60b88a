# SPDX-License-Identifier: Apache-2.0
"""What several of the commands need: files read strictly, flags, timings, processes of their own."""
