"""The private parts of packages that the web process uses, each in one place.

Before you change a version here, check that the named place still works with the new package.
"""

from importlib.metadata import version

import pytest


@pytest.mark.parametrize(
    ("package", "checked", "place"),
    [
        ("djangorestframework", "3.18.3", "pushsvc.common.http.drf.django_request"),
        ("django", "5.2.19", "pushsvc.common.http.drf.problem_handler (_has_been_logged)"),
        ("django", "5.2.19", "pushsvc.common.store.sessions.SessionStore.load (_session_key)"),
        ("asgiref", "3.13.0", "pushsvc.asgi._environ (WsgiToAsgiInstance)"),
        ("drf-spectacular", "0.30.0", "pushsvc.common.http.openapi.StrictSchema"),
        ("granian", "2.8.7", "pushsvc.sockets.end_unread_connections (its listening socket)"),
    ],
)
def test_the_pinned_version_is_the_one_that_was_checked(package, checked, place):
    assert version(package) == checked, f"check {place}"
