"""In a real browser, no page of ours needs what its policy forbids, or a file that is missing.

The fixture `console` fails a test if the browser complained. `test_pages.py` opens the pages of an
account.
"""

from tests.admin.support import make_root

PUBLIC = ["/", "/docs", "/docs/errors", "/admin/login/"]
OF_A_SUPERUSER = ["/admin/", "/admin/auth/user/", "/admin/auth/user/add/", "/admin/nothing/"]


def test_no_page_needs_what_its_policy_forbids(console):
    console.answers.add(404)
    for user, paths in ((None, PUBLIC), (make_root(), OF_A_SUPERUSER)):
        page = console.open("/healthz", user)
        for path in paths:
            page.goto(path, wait_until="networkidle")
            assert page.url == f"{console.address}{path}"


def test_the_browser_reports_what_a_policy_forbids(console):
    """Without such reports the other tests would pass whatever the pages did."""
    page = console.open("/")

    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"
    )

    [complaint] = console.complaints
    console.complaints.clear()
    assert "Content Security Policy" in complaint
