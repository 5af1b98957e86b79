"""Connections that are lost: one class of errors for that, and a way to a new one."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from django.db import Error, connections

logger = logging.getLogger("onebeat")


def django_errors(using: str) -> AbstractContextManager[None]:
    """Makes every error of the database Django's own. Around whatever catches those, once for a piece of work.

    mysqlclient raises its own past Django's when a query set closes the cursor of a connection that is lost.
    """
    return connections[using].wrap_database_errors


def drop_connection(using: str) -> None:
    """Close a connection that has failed, so that the next statement opens another. Never an error: it may be closed
    already.
    """
    try:
        connections[using].close()
    except Error as error:
        logger.debug("closing the database connection: %s", error)
