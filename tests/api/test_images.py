"""/images/<name>: what devices get, how it is cached, and that it is only an image."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from notifications_app.images.decoding import Use
from notifications_app.images.services import image_add, image_remove
from tests.factories import make_channel
from tests.images import file_of, opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def channel():
    return make_channel()


@pytest.fixture
def user():
    return User.objects.create_user("alice")


@pytest.fixture
def image(channel, user):
    return image_add(channel=channel, data=file_of(), use=Use.IMAGE, user=user)


def load(name, **headers):
    return Client().get(f"/images/{name}", headers=headers)


def test_anyone_loads_an_image_and_keeps_it(image):
    answer = load(image)

    assert answer.status_code == 200
    assert opened(answer.content).size == (600, 300)
    assert answer["Content-Type"] == "image/png"
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("default-src 'none'")
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "RateLimit" not in answer
    assert "Set-Cookie" not in answer


def test_a_cache_that_has_it_gets_no_body(image):
    again = load(image, if_none_match=load(image)["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in again["Cache-Control"]


def test_a_photo_has_the_type_of_a_photo(channel, user):
    image = image_add(channel=channel, data=file_of("JPEG"), use=Use.IMAGE, user=user)
    assert str(image).endswith(".jpg")
    assert load(image)["Content-Type"] == "image/jpeg"


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "0" * 32 + ".png",
        "{name}.jpg",
        "{name}",
        "{name}.png.html",
        "{name}.svg",
        "..%2f..%2fetc%2fpasswd",
        "%00{name}.png",
        "{name}.png%0a",
        "{upper}.png",
    ],
)
def test_another_name_is_not_found_and_not_cached(image, name):
    answer = load(name.format(name=image.name, upper=image.name.upper()))
    assert answer.status_code == 404
    assert answer.get("Cache-Control", "no-store") == "no-store"


def test_the_name_of_an_image_depends_on_its_channel(image, user):
    """So a channel that is deleted takes no image of another one with it."""
    other = image_add(channel=make_channel("Other"), data=file_of(), use=Use.IMAGE, user=user)
    assert other.name != image.name
    image_remove(image)
    assert load(image).status_code == 404
    assert load(other).status_code == 200


def test_only_reading_is_allowed(image):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(Client(), method)(f"/images/{image}").status_code == 405


def test_an_address_loads_a_bounded_number_of_images_a_minute(image, settings):
    settings.IMAGES_PER_MINUTE = 2
    assert [load(image).status_code for _ in range(3)] == [200, 200, 429]
