"""Images are kept while something names them, and then deleted."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from notifications_app import retention
from notifications_app.content.values import Content, SendRequest
from notifications_app.images.decoding import Use
from notifications_app.images.services import KEPT_DAYS, image_add, images_purge
from notifications_app.models import Image
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.services import notification_accept
from pushsvc.common.platforms import Platform
from tests.factories import (
    make_automation,
    make_channel,
    make_draft,
    make_newsfeed,
    make_schedule,
    make_template,
)
from tests.images import file_of
from tests.pipeline.support import waits_for

pytestmark = pytest.mark.django_db
AGO = timedelta(days=KEPT_DAYS, hours=1)


@pytest.fixture
def user():
    return User.objects.create_user("alice")


@pytest.fixture
def channel():
    return make_channel()


@pytest.fixture
def image(channel, user):
    return image_add(channel=channel, data=file_of(), use=Use.IMAGE, user=user)


def address(image):
    return f"https://push.example.com/images/{image}"


def pass_time(by=AGO):
    Image.objects.update(kept_until=F("kept_until") - by)


def is_kept():
    retention.purge()
    return Image.objects.exists()


def send(channel, content, **fields):
    return notification_accept(
        channel=channel,
        request=SendRequest(content=content, target_platforms=(Platform.WEB,), **fields),
    )


def test_an_image_that_nothing_names_is_deleted_after_its_time(image):
    pass_time(AGO - timedelta(hours=2))
    assert is_kept()
    pass_time(timedelta(hours=2))
    assert not is_kept()


@pytest.mark.django_db(transaction=True)
def test_an_image_that_is_uploaded_again_while_it_is_deleted_is_kept(channel, user, image):
    pass_time()
    again = []

    def upload():
        again.append(image_add(channel=channel, data=file_of(), use=Use.IMAGE, user=user))

    with waits_for(lambda: images_purge(1), upload):
        pass

    assert Image.objects.get() == again[0]
    assert is_kept()


def contents(image):
    yield Content(body="x", icon=address(image))
    yield Content(body="x", image=address(image))
    yield Content(body="x", android={"image": address(image)})
    yield Content(body="x", translations={"de": {"image": address(image)}})


@pytest.mark.parametrize("number", range(4))
def test_a_send_keeps_the_images_that_it_names(channel, image, number):
    pass_time()
    send(channel, list(contents(image))[number])
    assert is_kept()
    pass_time()
    assert not is_kept()


def test_a_send_of_another_channel_keeps_none(image):
    pass_time()
    send(make_channel("Other"), Content(body="x", image=address(image)))
    assert not is_kept()


def test_a_scheduled_send_keeps_them_from_its_time_on(channel, image):
    at = timezone.now() + timedelta(days=20)
    send(channel, Content(body="x", image=address(image)), scheduled_at=at)
    pass_time(AGO + timedelta(days=19))
    assert is_kept()
    pass_time(timedelta(days=2))
    assert not is_kept()


def test_an_edit_keeps_the_images_that_it_names(channel, image):
    at = timezone.now() + timedelta(days=20)
    sent = send(channel, Content(body="x"), scheduled_at=at)
    pass_time()
    notification_edit(channel=channel, notification_id=sent.pk, changes={"image": address(image)})
    assert is_kept()


def of_newsfeed(channel, image):
    newsfeed = make_newsfeed(channel)
    newsfeed.send_json = newsfeed.send_json.replace("{", f'{{"image": "{address(image)}", ', 1)
    newsfeed.save()
    return newsfeed


def test_templates_drafts_and_repeated_sends_keep_them(channel, image, user):
    named = {"title": "x", "body": "x", "image": address(image)}
    for make in (
        lambda: make_template(channel, "x", named),
        lambda: make_draft(channel, user, **named),
        lambda: make_schedule(channel, "x", image=address(image)),
        lambda: make_automation(channel, "x", image=address(image)),
        lambda: of_newsfeed(channel, image),
    ):
        row = make()
        pass_time()
        assert is_kept(), row
        row.delete()
    pass_time(timedelta(days=2))
    assert not is_kept()


def test_a_template_of_another_channel_does_not(image):
    make_template(make_channel("Other"), "x", {"image": address(image)})
    pass_time()
    assert not is_kept()
