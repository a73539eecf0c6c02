"""A database in which the migrations were applied once, for all of pytest's processes to copy.

Applying them takes five seconds of processor time, a copy almost none.
"""

import os

from django.core.management import call_command
from django.db import connection

from tests.unmeasured import unmeasured

_PREFIX = "template_of_run_"
_LOCK = 5_200_811


def copy_migrated_database():
    """Lets Django create the test database as a copy, where processes run tests side by side."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run:
        name = f"{_PREFIX}{run}"
        _make(name)
        connection.settings_dict["TEST"]["TEMPLATE"] = name


def _make(name):
    """The first process makes it, and the others wait."""
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # until the session ends
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [f"{_PREFIX}%"])
        found = {row[0] for row in cursor.fetchall()}
        if name in found:
            return
        for earlier in found:  # only a server that outlives the run has any
            cursor.execute(f'DROP DATABASE "{earlier}"')
        cursor.execute(f'CREATE DATABASE "{name}"')
        _migrate(name)


def _migrate(name):
    own = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        with unmeasured():  # the other processes wait
            call_command("migrate", verbosity=0, interactive=False)
    finally:
        connection.close()  # a database with sessions cannot be copied
        connection.settings_dict["NAME"] = own
