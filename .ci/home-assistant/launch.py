# Settle
# SPDX-License-Identifier: Apache-2.0

"""Starts Home Assistant with what its configuration names, and no user interface."""

import sys

from homeassistant import bootstrap

bootstrap.DEFAULT_INTEGRATIONS = set()
bootstrap.CRITICAL_INTEGRATIONS = set()

from homeassistant.__main__ import main  # noqa: E402

sys.exit(main())
