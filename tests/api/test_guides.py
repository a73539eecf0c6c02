"""Pages for people who use the service: the home page, the guides and the examples."""

import re

import pytest
from django.conf import settings
from django.test import Client

from pushsvc.site.guides import EXAMPLES, GUIDES, IDENTITY_EXAMPLES

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a href="([^"]+)"')


def page(path):
    answer = Client().get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def own_links(text):
    return {link for link in LINK.findall(text) if link.startswith("/")}


def test_every_link_of_the_home_page_opens():
    links = own_links(page("/"))

    assert links >= {"/docs/start", "/docs/examples", "/docs", "/docs/errors", "/admin/"}
    for link in links - {"/admin/"}:
        page(link)


def test_the_home_page_links_to_the_demo_only_if_there_is_one(settings, tmp_path):
    assert "/demo" not in own_links(page("/"))

    settings.DEMO_RECORD = str(tmp_path / "demo.json")

    assert "/demo" in own_links(page("/"))


@pytest.mark.parametrize("name", GUIDES)
def test_every_link_of_a_guide_leads_to_an_existing_page_and_heading(name):
    for link in own_links(page(f"/docs/{name}")):
        path, _, anchor = link.partition("#")
        assert not anchor or f'id="{anchor}"' in page(path), link


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_has_no_link_to_a_file_of_the_repository(name):
    links = LINK.findall(page(f"/docs/{name}"))

    assert all(link.startswith(("/", "#", "https:", "http:")) for link in links), links


def test_links_to_documents_at_the_root_lead_to_their_pages():
    assert "/docs/security#supply-chain" in own_links(page("/docs/upgrade"))
    assert "/docs/changelog" in own_links(page("/docs/upgrade"))
    assert "/docs/start#deploy-it" in own_links(page("/docs/install"))


def test_a_link_to_a_file_without_a_page_is_shown_as_text():
    assert "<a>deploy/nginx.conf</a>" in page("/docs/install")


def test_every_document_has_a_page():
    documents = {path.stem for path in (settings.BASE_DIR / "docs").glob("*.md")}

    assert documents <= {*GUIDES, "errors"}


def test_an_unknown_name_is_not_found():
    for name in ("nothing", "openapi", "..%2FREADME", "README"):
        assert Client().get(f"/docs/{name}").status_code == 404


def test_a_guide_renders_tables_and_code_and_escapes_markup():
    text = page("/docs/configuration")

    assert "<table>" in text
    assert "<code>DATABASE_URL</code>" in text
    assert "<script" not in text


def test_the_examples_are_shown_unchanged():
    text = page("/docs/examples")

    assert all(f'id="{name}"' in text for name in EXAMPLES | IDENTITY_EXAMPLES)
    assert "Idempotency-Key" in text
