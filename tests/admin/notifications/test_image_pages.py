"""The images of a channel in the console: uploading, choosing, deleting; who may, and bounds."""

import re

import pytest
from auditlog.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from notifications_app.images import services
from notifications_app.models import Image
from tests.admin.notifications.composing import COMPOSE, IMAGE
from tests.admin.support import signed_in
from tests.images import file_of


def page_of(house):
    return reverse("admin:channel_images", args=[house.channel.pk])


def chooser_of(house):
    return reverse("admin:images_choose", args=[house.channel.pk])


def upload(client, house, data=None, *, name="bread.png", use="image", to=page_of, **options):
    given = SimpleUploadedFile(name, file_of() if data is None else data)
    return client.post(to(house), {"file": given, "use": use}, **options)


def test_an_image_is_added_and_shown_with_its_address(alice, sender, settings):
    settings.PUBLIC_BASE_URL = "https://push.example.com"
    page = upload(sender, alice, follow=True).content.decode()

    image = Image.objects.get()
    assert (image.channel, image.width, image.height) == (alice.channel, 600, 300)
    assert image.added_by == alice.members["sender"]
    assert "The image was added, 600 by 300 pixels." in page
    assert f'src="https://push.example.com/images/{image}"' in page
    assert "Devices load images over" not in page
    entry = LogEntry.objects.latest("id")
    assert entry.object_repr == str(image)


def test_without_https_the_page_says_that_devices_load_nothing(alice, sender):
    page = sender.get(page_of(alice)).content.decode()
    assert "Devices load images over" in page


def test_the_same_image_is_stored_once(alice, sender):
    for name in ("a.png", "b.png"):
        upload(sender, alice, name=name)
    assert Image.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("x.png", b"<svg onload=alert(1)>", "This is not a complete image"),
        ("../../etc/x.png", b"", "The file is empty."),
        ("x.exe", b"MZ", "This is not a complete image"),
    ],
)
@pytest.mark.parametrize("to", [page_of, chooser_of])
def test_what_is_no_image_is_an_error_next_to_the_file(alice, sender, name, data, error, to):
    answer = upload(sender, alice, data, name=name, use="icon", to=to)
    assert error in answer.context["form"].errors["file"][0]
    assert error in answer.content.decode()
    assert answer.context["form"]["use"].value() == "icon"
    assert not Image.objects.exists()


def test_a_form_without_a_file_or_with_another_use_is_refused(alice, sender):
    answer = sender.post(page_of(alice), {"use": "x"})
    assert answer.status_code == 400
    assert set(answer.context["form"].errors) == {"file", "use"}


def test_the_name_of_the_file_means_nothing(alice, sender):
    for name in ("photo.svg", "a.html", '"><script>.png', "x" * 200 + ".png"):
        assert upload(sender, alice, name=name).status_code == 302
    image = Image.objects.get()
    assert re.fullmatch(r"[0-9a-f]{32}\.png", str(image))


# --- choosing in a form ---------------------------------------------------------------------------


def test_the_forms_that_write_a_notification_offer_the_channel_s_images(alice, bob, sender):
    upload(sender, alice)
    upload(signed_in(bob.members["owner"]), bob, file_of(size=(90, 90)))
    own = Image.objects.get(channel=alice.channel)

    assert 'data-choose="icon"' in sender.get(COMPOSE).content.decode()
    new_template = reverse("admin:template_new", args=[alice.channel.pk])
    editor = signed_in(alice.members["editor"])
    assert 'data-choose="image"' in editor.get(new_template).content.decode()
    shown = sender.get(chooser_of(alice)).content.decode()
    assert re.findall(r"data-address=\"[^\"]*/images/(\w+)", shown) == [own.name]


def test_an_image_that_is_uploaded_there_is_the_one_to_choose(alice, sender):
    upload(sender, alice, file_of(size=(90, 90)))
    shown = upload(sender, alice, to=chooser_of).content.decode()
    newest = Image.objects.order_by("-id").first()
    assert re.findall(r"/images/(\w+)\.png\" data-new", shown) == [newest.name]


def test_an_own_image_needs_no_request_to_be_checked(alice, bob, sender, settings):
    settings.PUBLIC_BASE_URL = "https://push.example.com"
    upload(sender, alice)
    address = f"https://push.example.com/images/{Image.objects.get()}"

    def check(client, house, address):
        return client.post(IMAGE, {"channel": str(house.channel.pk), "address": address}).json()

    told = check(sender, alice, address)
    assert told["error"] == ""
    assert told["found"].startswith("PNG, ")
    settings.PUBLIC_BASE_URL = ""
    local = address.replace("https://push.example.com", "http://testserver")
    assert check(sender, alice, local)["error"].startswith("The address must begin with https://")
    assert check(sender, alice, local)["found"] == told["found"]
    theirs = check(signed_in(bob.members["sender"]), bob, local)
    assert theirs["found"] == ""


# --- deleting, who may, bounds --------------------------------------------------------------------


def test_deleting_removes_it(alice, sender):
    upload(sender, alice)
    page = sender.post(page_of(alice), {"image": str(Image.objects.get().pk)}, follow=True)
    assert "The image was deleted." in page.content.decode()
    assert not Image.objects.exists()
    assert LogEntry.objects.latest("id").action == LogEntry.Action.DELETE


def test_a_viewer_looks_and_changes_nothing(alice, sender, viewer):
    upload(sender, alice)
    assert "You need the role “writer”" in viewer.get(page_of(alice)).content.decode()
    assert upload(viewer, alice).status_code == 403
    assert upload(viewer, alice, to=chooser_of).status_code == 403
    assert viewer.post(page_of(alice), {"image": str(Image.objects.get().pk)}).status_code == 403
    assert Image.objects.count() == 1


def test_a_writer_adds_images_and_deletes_none(alice):
    writer = signed_in(alice.members["writer"])
    assert upload(writer, alice).status_code == 302
    assert upload(writer, alice, file_of(size=(9, 9)), to=chooser_of).status_code == 200
    image = Image.objects.all()[0]
    assert ">Delete<" not in writer.get(page_of(alice)).content.decode()
    assert writer.post(page_of(alice), {"image": str(image.pk)}).status_code == 403
    assert Image.objects.count() == 2


def test_an_image_of_another_channel_is_not_deleted(alice, bob, sender):
    upload(signed_in(bob.members["owner"]), bob)
    theirs = Image.objects.get()
    assert sender.post(page_of(alice), {"image": str(theirs.pk)}).status_code == 404
    assert sender.get(page_of(bob)).status_code == upload(sender, bob).status_code == 404
    assert Image.objects.get() == theirs


def test_a_channel_has_a_bounded_number_of_images(alice, sender, monkeypatch):
    monkeypatch.setattr(services, "MOST_IMAGES", 1)
    upload(sender, alice)
    answer = upload(sender, alice, file_of(size=(9, 9)))
    assert "Delete one first." in answer.context["form"].errors["file"][0]
    assert upload(sender, alice).status_code == 302  # the same again


def test_a_channel_has_a_bounded_number_of_bytes(alice, bob, sender, monkeypatch):
    upload(sender, alice)
    size = Image.objects.get().size
    monkeypatch.setattr(services, "MOST_TOTAL_BYTES", size + 10)
    answer = upload(sender, alice, file_of(size=(90, 90)))
    assert "Delete one first." in answer.context["form"].errors["file"][0]
    assert upload(signed_in(bob.members["owner"]), bob).status_code == 302


def test_a_user_uploads_a_bounded_number_of_images_a_minute(alice, sender, settings):
    settings.IMAGE_UPLOADS_PER_MINUTE = 1
    upload(sender, alice)
    answer = upload(sender, alice)
    assert "Wait" in answer.context["form"].errors["file"][0]
