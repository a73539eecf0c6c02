"""Rows from earlier versions, in which the end of a host's name decided the push service."""

from importlib import import_module

import pytest
from django.db import connection

from pushsvc.common.endpoints import push_service
from subscriptions_app.models import Subscription
from tests.factories import add_subscriptions

MIGRATION = import_module("subscriptions_app.migrations.0006_services_by_whole_host")
BEFORE = {
    "fcm.googleapis.com": "fcm",
    "FCM.googleapis.com:443": "fcm",
    "jmt17.google.com": "fcm",
    "android.googleapis.com": "fcm",
    "updates.push.services.mozilla.com": "mozilla",
    "no1.push.services.mozilla.com": "mozilla",
    "web.push.apple.com": "apple",
    "no1.push.apple.com": "apple",
    "wns2-par02p.notify.windows.com": "wns",
    "wns2-nowhere.notify.windows.com": "wns",
    "push.example.org": "other",
    "127.0.0.1:8030": "127.0.0.1:8030",
}


@pytest.mark.parametrize("rest", ["/x", "?x", ""])
def test_the_migration_names_the_service_of_the_whole_host(alice, rest):
    rows = add_subscriptions(alice.channel, len(BEFORE))
    for row, (host, service) in zip(rows, BEFORE.items(), strict=True):
        named = {"address": f"https://{host}{rest}", "push_service": service}
        Subscription.objects.filter(pk=row.pk).update(**named)

    with connection.cursor() as cursor:
        cursor.execute(MIGRATION._RENAME)

    named = dict(Subscription.objects.values_list("address", "push_service"))
    for host, before in BEFORE.items():
        now = push_service(host.lower().removesuffix(":443"))
        expected = before if before == host else now
        assert named[f"https://{host}{rest}"] == expected
