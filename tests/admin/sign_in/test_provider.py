"""Sign-in by OpenID Connect at a certified provider, as a browser does it."""

from urllib.parse import unquote

import pytest
from allauth.socialaccount.models import SocialAccount
from auditlog.models import LogEntry
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.test import Client
from django.urls import reverse

from channels_app.sign_in import two_step
from tests.admin.accounts.test_members import act
from tests.admin.sign_in import providers
from tests.admin.sign_in.providers import CALLBACK, CODE, START, Person, certified_provider, path_of
from tests.admin.sign_in.steps import code_of, turned_on
from tests.admin.support import PASSWORD, signed_in

EMAIL = "viewer@example.com"
SET_UP = "/admin/auth/user/two-step/"


@pytest.fixture(scope="module")
def _issuer():
    with certified_provider() as issuer:
        yield issuer


@pytest.fixture
def issuer(_issuer, settings):
    providers.use(settings, _issuer)
    return _issuer


@pytest.fixture
def viewer(alice):
    user = alice.members["viewer"]
    user.email = EMAIL
    user.save()
    return user


def who(client):
    """The user name of the one who is signed in, or none."""
    answer = client.get("/admin/")
    return answer.context["user"].username if answer.status_code == 200 else None


def refusal(answer):
    assert answer.status_code == 403
    return " ".join(answer.content.decode().split())


def test_a_member_signs_in_by_a_verified_address(viewer, issuer):
    client = Client()
    answer = providers.sign_in(Person("v", EMAIL), client)

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert who(client) == "alice-viewer"
    link = SocialAccount.objects.get(user=viewer)
    assert (link.provider, link.uid) == (issuer, f"v|{EMAIL}|true")
    notes = [entry.additional_data["note"] for entry in LogEntry.objects.filter(actor=viewer)]
    assert "Signed in by Example." in notes
    assert f"The user can now sign in by {issuer}." in notes


def test_the_session_has_its_usual_length_and_a_new_key(viewer, issuer):
    client = Client()
    begun = client.get(START)
    before = client.cookies["sessionid"].value
    assert client.session.get_expiry_age() <= 600
    client.get(path_of(Person("v", EMAIL).approve(begun["Location"])))

    assert client.session.get_expiry_age() == 12 * 3600
    assert client.cookies["sessionid"].value != before


def test_the_page_that_was_asked_for_is_opened_and_no_other_site(viewer, issuer):
    asked = "/admin/channels_app/channel/?q=a"
    login = Client().get("/admin/login/", {"next": asked}).content.decode()
    assert f"{START}?next=/admin/channels_app/channel/%3Fq%3Da" in login or (
        f"{START}?next=%2Fadmin%2Fchannels_app%2Fchannel%2F%3Fq%3Da" in login
    )
    path = f"{START}?next=%2Fadmin%2Fchannels_app%2Fchannel%2F%3Fq%3Da"
    assert providers.sign_in(Person("v", EMAIL), path=path)["Location"] == asked
    for evil in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x"):
        answer = providers.sign_in(Person("v", EMAIL), path=f"{START}?next={evil}")
        assert answer["Location"] == "/admin/", evil


@pytest.mark.parametrize(
    ("person", "says"),
    [
        (Person("v", EMAIL, verified=False), "did not confirm an e-mail address"),
        (Person("s", "stranger@example.com"), "No user of this service has your e-mail address"),
        (Person("n"), "did not confirm an e-mail address"),
    ],
)
def test_nobody_is_signed_in_or_created_without_an_invitation(viewer, issuer, person, says):
    client, users = Client(), User.objects.count()

    assert says in refusal(providers.sign_in(person, client))
    assert who(client) is None
    assert (SocialAccount.objects.count(), User.objects.count()) == (0, users)


def test_the_stored_link_wins_over_the_address(alice, viewer, issuer):
    """An address that the provider gives to somebody else opens nothing."""
    providers.sign_in(Person("v", EMAIL))
    assert "signs in as somebody else there" in refusal(
        providers.sign_in(Person("newcomer", EMAIL))
    )

    User.objects.filter(pk=viewer.pk).update(email="other@example.com")
    User.objects.filter(username="alice-owner").update(email=EMAIL)
    client = Client()
    providers.sign_in(Person("v", EMAIL), client)
    assert who(client) == "alice-viewer"


def test_a_superuser_removes_the_link(viewer, root, issuer):
    providers.sign_in(Person("v", EMAIL))
    page = reverse("admin:auth_user_change", args=[viewer.pk])
    assert "Remove the link" in signed_in(root).get(page).content.decode()
    signed_in(root).post(page, {"do": "unlink"})
    client = Client()
    providers.sign_in(Person("newcomer", EMAIL), client)

    assert who(client) == "alice-viewer"


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}])
def test_a_deactivated_user_is_not_signed_in(viewer, issuer, change):
    providers.sign_in(Person("v", EMAIL))
    User.objects.filter(pk=viewer.pk).update(**change)
    client = Client()

    assert "deactivated" in refusal(providers.sign_in(Person("v", EMAIL), client))
    assert who(client) is None


def test_an_invited_member_needs_no_password(alice, issuer):
    owner = signed_in(alice.members["owner"])
    act(owner, alice, "add", username="carol", role="sender", email="carol@example.com")
    client = Client()
    providers.sign_in(Person("c", "carol@example.com"), client)

    assert who(client) == "carol"
    assert not User.objects.get(username="carol").has_usable_password()


def test_signing_out_ends_the_session_here(viewer, issuer):
    client = Client()
    providers.sign_in(Person("v", EMAIL), client)
    client.post(reverse("admin:logout"))

    assert who(client) is None


def test_an_answer_works_once_and_only_in_the_browser_that_asked(viewer, issuer):
    client, thief = Client(), Client()
    person = Person("v", EMAIL)
    answer = path_of(person.approve(client.get(START)["Location"]))

    assert "Start again" in refusal(thief.get(answer))
    assert client.get(answer).status_code == 302
    client.post(reverse("admin:logout"))
    assert "Start again" in refusal(client.get(answer))
    assert who(client) is None


def test_a_denial_at_the_provider_is_told(viewer, issuer):
    client = Client()
    state = client.get(START)["Location"].partition("state=")[2].partition("&")[0]
    answer = client.get(CALLBACK, {"state": state, "error": "access_denied", "iss": issuer})

    assert "Start again" in refusal(answer)


# --- the second step ------------------------------------------------------------------------------


def at_the_code(user, person=None):
    """A browser that the provider sent back, of a user who has a second step."""
    codes = turned_on(user)
    client = Client()
    answer = providers.sign_in(person or Person("v", EMAIL), client)
    assert answer["Location"] == CODE
    return client, codes


def test_a_user_with_a_second_step_gives_a_code_here(viewer, issuer):
    client, _ = at_the_code(viewer)
    assert who(client) is None

    assert client.post(CODE, {"code": ""}).status_code == 200
    assert client.post(CODE, {"code": "000000"}).status_code == 200
    assert who(client) is None
    assert client.post(CODE, {"code": code_of(viewer)})["Location"] == "/admin/"
    assert who(client) == "alice-viewer"


def test_who_has_the_address_but_no_code_is_not_linked(viewer, issuer):
    """Otherwise the one whose address it was could no longer sign in there."""
    at_the_code(viewer, Person("newcomer", EMAIL))
    assert not SocialAccount.objects.exists()

    client = Client()
    providers.sign_in(Person("v", EMAIL), client)
    client.post(CODE, {"code": code_of(viewer)})
    assert who(client) == "alice-viewer"
    assert SocialAccount.objects.get().uid == f"v|{EMAIL}|true"


def test_wrong_codes_lock_the_user_out(viewer, issuer):
    client, codes = at_the_code(viewer)
    answers = [client.post(CODE, {"code": f"{n:06}"}).status_code for n in range(5)]

    assert answers == [200] * 4 + [429]
    assert AccessAttempt.objects.get().username == "alice-viewer"
    assert client.post(CODE, {"code": codes[0]}).status_code == 429
    assert who(client) is None


def test_a_code_without_the_provider_signs_nobody_in(viewer, issuer):
    turned_on(viewer)
    client = Client()

    assert client.post(CODE, {"code": code_of(viewer)})["Location"] == "/admin/login/"
    assert who(client) is None


def test_the_code_must_come_soon(viewer, issuer, settings):
    client, _ = at_the_code(viewer)
    settings.ACCOUNT_LOGIN_TIMEOUT = -1

    assert client.post(CODE, {"code": code_of(viewer)})["Location"] == "/admin/login/"
    assert who(client) is None


def test_the_providers_second_step_counts_only_if_a_setting_says_so(viewer, issuer, settings):
    turned_on(viewer)
    settings.OIDC_TRUST_SECOND_STEP = True
    client = Client()
    assert providers.sign_in(Person("v", EMAIL), client)["Location"] == "/admin/"
    assert who(client) == "alice-viewer"

    settings.OIDC_TRUST_SECOND_STEP = False
    assert who(client) is None


def test_an_account_that_requires_two_steps_has_it_set_up_or_trusts_the_provider(
    alice, viewer, issuer, settings
):
    alice.account.requires_two_step = True
    alice.account.save()
    client = Client()
    providers.sign_in(Person("v", EMAIL), client)
    assert client.get("/admin/")["Location"] == SET_UP

    settings.OIDC_TRUST_SECOND_STEP = True
    assert who(client) == "alice-viewer"
    assert not two_step.is_on(viewer)
    viewer.refresh_from_db()
    viewer.set_password(PASSWORD)  # as by a link, because the sign-in by the provider removed it
    viewer.save()
    assert signed_in(viewer).get("/admin/")["Location"] == SET_UP


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("page", ["app/", "passkey/"])
def test_the_first_second_step_needs_a_new_sign_in_at_the_provider(
    alice, viewer, issuer, is_required, page
):
    """A session of the provider, as in an unlocked browser, is no proof of the person."""
    alice.account.requires_two_step = is_required
    alice.account.save()
    person, client, page = Person("v", EMAIL), Client(), f"{SET_UP}{page}"
    providers.sign_in(person)
    providers.sign_in(person, client)

    asked = client.get(page)["Location"]
    assert unquote(asked) == f"{START}?next={page}"
    assert client.post(page)["Location"] == asked
    assert providers.sign_in(person, client, asked)["Location"] == page
    assert client.get(page).status_code == 200


# --- where it is off ------------------------------------------------------------------------------


def test_without_a_provider_there_is_no_button_and_no_page(db, settings):
    settings.OIDC_ISSUER = ""

    assert START not in Client().get("/admin/login/").content.decode()
    for path in (START, CALLBACK, f"{START}choice/"):
        assert Client().get(path).status_code == 404
        assert Client().post(path).status_code == 404


@pytest.mark.parametrize(
    "issuer",
    [
        "accounts.example.com",
        "http://accounts.example.com",
        "https://accounts.example.com?x",
        "https://",
        "file:///etc",
    ],
)
def test_the_issuer_must_be_an_https_address(settings, issuer):
    providers.use(settings, issuer)

    assert "pushsvc.E017" in {message.id for message in run_checks()}


def test_a_provider_needs_a_client_and_a_public_address(settings):
    providers.use(settings, "https://accounts.example.com")
    assert not {"pushsvc.E017", "pushsvc.E018"} & {message.id for message in run_checks()}

    settings.OIDC_CLIENT_ID = settings.OIDC_CLIENT_SECRET = settings.PUBLIC_BASE_URL = ""
    assert [message.id for message in run_checks()].count("pushsvc.E018") == 3
