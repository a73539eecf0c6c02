"""Images in a bucket: the calls, against a server of S3's protocol that verifies signatures."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from datetime import timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from notifications_app import retention
from notifications_app.images import bucket as bucket_module
from notifications_app.images import services
from notifications_app.images.bucket import BucketFailed, bucket_delete, bucket_get, bucket_put
from notifications_app.images.decoding import ImageRefused, Use
from notifications_app.images.services import (
    KEPT_DAYS,
    image_add,
    image_remove,
    images_delete,
)
from notifications_app.models import Image, ImageRemoval
from pushsvc.common.ids import uuid7
from tests.factories import make_channel
from tests.images import file_of, opened
from tests.pipeline.support import until

pytestmark = pytest.mark.django_db

SERVER = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}
# The calls that make a user with a key, of whom the server verifies all later calls.
UNSIGNED_CALLS = 3


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def s3():
    """(the server's address, key id, secret, a client of AWS's library)"""
    port = free_port()
    env = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(UNSIGNED_CALLS)}
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)], env=env) as server:
        try:
            until(lambda: answers(port), seconds=60)
            yield _set_up(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


def _set_up(address):
    options = {"endpoint_url": address, "region_name": "eu-central-1"}
    iam = boto3.client("iam", aws_access_key_id="first", aws_secret_access_key="first", **options)
    iam.create_user(UserName="pushsvc")
    document = json.dumps(POLICY)
    iam.put_user_policy(UserName="pushsvc", PolicyName="all", PolicyDocument=document)
    key = iam.create_access_key(UserName="pushsvc")["AccessKey"]
    id_, secret = key["AccessKeyId"], key["SecretAccessKey"]
    client = boto3.client(
        "s3",
        aws_access_key_id=id_,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}),
        **options,
    )
    region = {"LocationConstraint": "eu-central-1"}
    client.create_bucket(Bucket="images", CreateBucketConfiguration=region)
    return address, id_, secret, client


@pytest.fixture(autouse=True)
def bucket(s3, settings):
    """AWS's client, for the bucket of the settings."""
    address, id_, secret, client = s3
    settings.IMAGES_BUCKET_URL = f"{address}/images"
    settings.IMAGES_BUCKET_REGION = "eu-central-1"
    settings.IMAGES_BUCKET_KEY_ID, settings.IMAGES_BUCKET_SECRET_KEY = id_, secret
    yield client
    for key in keys(client):
        client.delete_object(Bucket="images", Key=key)


def keys(client):
    return [each["Key"] for each in client.list_objects_v2(Bucket="images").get("Contents", [])]


@pytest.fixture
def user():
    return User.objects.create_user("alice")


@pytest.fixture
def image(user):
    return image_add(channel=make_channel(), data=file_of(), use=Use.IMAGE, user=user)


def pass_time():
    """The time after which removals are due."""
    ImageRemoval.objects.update(due_at=Now())


def checks():
    return [
        message.id for message in run_checks() if message.id in {"pushsvc.E022", "pushsvc.E023"}
    ]


@pytest.mark.parametrize(
    "url",
    ["images", "ftp://s3.example.com/x", "https://", "https://x/y?z", "https://key:secret@x/y"],
)
def test_a_bucket_needs_an_address(settings, url):
    assert checks() == []
    settings.IMAGES_BUCKET_URL = url
    assert checks() == ["pushsvc.E022"]


def test_a_bucket_needs_a_key(settings):
    settings.IMAGES_BUCKET_KEY_ID = settings.IMAGES_BUCKET_SECRET_KEY = ""
    assert checks() == ["pushsvc.E023"] * 2
    settings.IMAGES_BUCKET_URL = ""
    assert checks() == []


def test_an_object_is_put_read_and_deleted(bucket):
    key = uuid7()
    for content in (b"one", b"two"):
        bucket_put(key, content, "image/png")
        assert bucket_get(key) == content
    stored = bucket.get_object(Bucket="images", Key=str(key))
    assert stored["ContentType"] == "image/png"

    for _ in range(2):
        bucket_delete(key)
    with pytest.raises(BucketFailed):
        bucket_get(key)


@pytest.mark.parametrize("name", ["IMAGES_BUCKET_SECRET_KEY", "IMAGES_BUCKET_KEY_ID"])
def test_a_call_with_a_wrong_key_fails(bucket, settings, name):
    setattr(settings, name, "wrong")
    with pytest.raises(BucketFailed):
        bucket_put(uuid7(), b"one", "image/png")
    assert keys(bucket) == []


def test_the_server_refuses_a_wrong_signature(s3):
    """Otherwise the tests here would show nothing about signatures."""
    address, id_, _, _ = s3
    other = boto3.client(
        "s3", endpoint_url=address, aws_access_key_id=id_, aws_secret_access_key="wrong"
    )
    with pytest.raises(ClientError):
        other.list_objects_v2(Bucket="images")


def test_an_image_is_in_the_bucket_and_served_from_there(bucket, image):
    assert keys(bucket) == [str(image.pk)]
    assert Image.objects.get().content is None
    assert not ImageRemoval.objects.exists()
    answer = Client().get(f"/images/{image}")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png")
    assert opened(answer.content).size == (600, 300)


def test_without_the_bucket_devices_get_503_and_nothing_is_stored(image, user, settings):
    settings.IMAGES_BUCKET_URL = "http://127.0.0.1:1/images"
    answer = Client().get(f"/images/{image}")
    assert (answer.status_code, answer["Cache-Control"]) == (503, "no-store")
    with pytest.raises(BucketFailed):
        image_add(channel=make_channel("Other"), data=file_of(), use=Use.ICON, user=user)
    assert Image.objects.count() == 1


def test_an_image_that_is_removed_is_removed_from_the_bucket(bucket, image):
    image_remove(image)
    assert keys(bucket) == [str(image.pk)]
    retention.purge()
    assert keys(bucket) == []
    assert not ImageRemoval.objects.exists()


def test_the_same_image_that_is_added_again_stays(bucket, image, user):
    image_remove(image)
    again = image_add(channel=image.channel, data=file_of(), use=Use.IMAGE, user=user)
    retention.purge()
    assert again.name == image.name
    assert keys(bucket) == [str(again.pk)]


@pytest.mark.parametrize("how", ["age", "channel"])
def test_housekeeping_and_the_deletion_of_a_channel_remove_it_there(bucket, image, how):
    if how == "channel":
        assert images_delete(image.channel_id, 10) == 1
    Image.objects.update(kept_until=F("kept_until") - timedelta(days=KEPT_DAYS + 1))
    retention.purge()
    assert not Image.objects.exists()
    assert keys(bucket) == []


def test_while_the_bucket_is_away_the_removal_waits(bucket, image, settings):
    image_remove(image)
    address, settings.IMAGES_BUCKET_URL = settings.IMAGES_BUCKET_URL, "http://127.0.0.1:1/images"
    retention.purge()
    assert ImageRemoval.objects.count() == 1
    settings.IMAGES_BUCKET_URL = address
    pass_time()
    retention.purge()
    assert keys(bucket) == []


@pytest.mark.parametrize("is_ended", [True, False])
def test_of_a_response_that_is_not_complete_nothing_is_served(
    image, settings, monkeypatch, is_ended
):
    """Browsers keep what they get for a year."""
    monkeypatch.setattr(bucket_module, "_SECONDS", (5.0, 0.2))
    other = image_add(
        channel=image.channel, data=file_of(size=(9, 9)), use=Use.ICON, user=image.added_by
    )
    image_remove(other)
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.IMAGES_BUCKET_URL = f"http://127.0.0.1:{server.getsockname()[1]}/images"
        is_over = threading.Event()
        thread = threading.Thread(target=respond, args=(server, 2, is_ended, is_over), daemon=True)
        thread.start()
        assert Client().get(f"/images/{image}").status_code == 503
        retention.purge()
        is_over.set()
        thread.join()
    assert ImageRemoval.objects.exists()


def respond(server, times, is_ended, is_over):
    """With the beginning of a response. The connection ends at once only if `is_ended`."""
    with ExitStack() as connections:
        for _ in range(times):
            connection = connections.enter_context(server.accept()[0])
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            if is_ended:
                connection.close()
        is_over.wait(60)


def test_an_upload_that_never_ends_leaves_no_object(bucket, user, monkeypatch):
    """As if the process died after the call: the room was taken meanwhile."""
    rooms = iter([False, True])

    def require_room(image):
        if next(rooms):
            raise ImageRefused("too_many", "full")

    monkeypatch.setattr(services, "_require_room", require_room)
    with pytest.raises(ImageRefused):
        image_add(channel=make_channel(), data=file_of(), use=Use.ICON, user=user)
    assert len(keys(bucket)) == 1
    retention.purge()
    assert len(keys(bucket)) == 1  # the upload may still be going on
    pass_time()
    retention.purge()
    assert keys(bucket) == []


def test_images_that_were_stored_in_the_database_stay_there(settings, user):
    address, settings.IMAGES_BUCKET_URL = settings.IMAGES_BUCKET_URL, ""
    image = image_add(channel=make_channel(), data=file_of(), use=Use.IMAGE, user=user)
    settings.IMAGES_BUCKET_URL = address
    assert Client().get(f"/images/{image}").status_code == 200
    image_remove(image)
    assert not ImageRemoval.objects.exists()
