"""The private parts of packages that the service uses, each in one place.

A patch release that changed one would fail the tests of the named place. Before you change a
version here, read the new package's code.
"""

from importlib.metadata import version

import pytest

from notifications_app.pipeline import wakeup
from pushsvc.celery import app
from tests.pipeline.support import waiting


@pytest.mark.parametrize(
    ("package", "checked", "place"),
    [
        ("djangorestframework", "3.18", "pushsvc.common.http.drf.django_request"),
        ("django", "5.2", "pushsvc.common.http.drf.problem_handler (_has_been_logged)"),
        ("django", "5.2", "channels_app.sign_in.session_store.SessionStore.load (_session_key)"),
        ("django", "5.2", "notifications_app.models.running (Field.get_col, Col.as_sql)"),
        ("django-allauth", "65.22", "channels_app.sign_in (forms and views of its pages)"),
        ("asgiref", "3.13", "pushsvc.web.application._environ (WsgiToAsgiInstance)"),
        ("drf-spectacular", "0.30", "pushsvc.common.http.openapi.StrictSchema"),
        ("firebase-admin", "7.7", "notifications_app.delivery.fcm.message (MessageEncoder)"),
        ("granian", "2.8", "pushsvc.web.sockets.end_unread_connections (its listening socket)"),
        ("kombu", "5.7", "pushsvc.celery (QoS.restore_at_shutdown, Channel._brpop_read)"),
        ("kombu", "5.7", "notifications_app.pipeline.wakeup._BrokerChannel (_create_client)"),
    ],
)
def test_the_minor_version_is_the_one_that_was_checked(package, checked, place):
    assert version(package).startswith(f"{checked}."), f"check {place}"


def test_a_worker_that_stops_puts_no_message_back():
    wakeup.wake("plan")
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        assert channel.basic_get("plan")

        channel.qos.restore_unacked_once()  # as kombu does it when a worker stops

    assert waiting("plan") == 0
