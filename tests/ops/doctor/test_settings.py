"""`manage.py doctor` names settings that contradict one another."""

import pytest

from tests.ops.doctor.findings import faults, the_fault

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "value", "title", "tone", "way"),
    [
        (
            "DEMO_RECORD",
            "/srv/demo.json",
            "DEMO_RECORD is set on a public service",
            "bad",
            "Remove DEMO_RECORD",
        ),
        (
            "FCM_API_BASE",
            "http://127.0.0.1:8101",
            "FCM_API_BASE is http://127.0.0.1:8101",
            "warn",
            "not to the provider",
        ),
        (
            "APNS_SERVER",
            "127.0.0.1:8102",
            "APNS_SERVER is 127.0.0.1:8102",
            "warn",
            "not to the provider",
        ),
    ],
)
def test_what_is_for_development_is_named_on_a_public_service(
    healthy, settings, name, value, title, tone, way
):
    setattr(settings, name, value)

    told = the_fault()
    assert told[:2] == (title, tone)
    assert way in told[2]


def test_what_is_for_development_is_no_finding_there(healthy, settings):
    settings.PUBLIC_BASE_URL = "http://localhost:8000"
    settings.DEMO_RECORD, settings.APNS_SERVER = "/srv/demo.json", "127.0.0.1:8102"

    assert not [title for title in faults() if "DEMO_RECORD" in title or "APNS_SERVER" in title]
