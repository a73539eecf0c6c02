"""The doctor's findings in the console."""

from django.urls import reverse

from bench.ports import own_port
from tests.admin.notifications.dashboards import everything_lives
from tests.admin.support import signed_in


def test_superusers_see_the_findings_of_the_command(root, settings):
    everything_lives()
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{own_port()}/0"

    page = signed_in(root).get(reverse("doctor"))

    text = page.content.decode()
    assert page.status_code == 200
    assert "The broker redis://" in text
    assert "Check CELERY_BROKER_URL" in text
    assert '<li class="ps-note" data-severity="ok">\n    <p><strong>PostgreSQL' in text
    assert '<a href="/docs/runbook#redis-is-unavailable">broker_unavailable</a>' in text


def test_only_superusers_see_the_findings(alice, root):
    for role, user in alice.members.items():
        browser = signed_in(user)
        assert browser.get(reverse("doctor")).status_code == 403, role
        assert reverse("doctor") not in browser.get(reverse("admin:index")).content.decode()
    assert reverse("doctor") in signed_in(root).get(reverse("admin:index")).content.decode()
