"""The page of a channel's credentials: texts and files as people have them."""

import json

import pytest
from django.urls import reverse

from channels_app.models import ProviderCredential
from channels_app.selectors import credential_for
from tests.admin.support import signed_in
from tests.api.credentials import APPLE, GOOGLE


def store(house, given):
    address = reverse("admin:channel_credentials", args=[house.channel.pk])
    return signed_in(house.members["manager"]).post(address, given)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_uploaded_file_is_read_as_an_editor_saved_it(alice, tmp_path, encoding):
    file = tmp_path / "account.json"
    file.write_text(json.dumps(GOOGLE, indent=2), encoding=encoding)

    with file.open("rb") as upload:
        response = store(alice, {"android-file": upload})

    assert response.status_code == 302
    assert ProviderCredential.objects.get().facts["project_id"] == GOOGLE["project_id"]


def test_a_pasted_key_with_literal_line_breaks_is_stored(alice):
    fields = {f"ios-{name}": value for name, value in APPLE.items() if name != "key"}
    pasted = f'\ufeff"{APPLE["key"]}"'.replace("\n", "\\n")

    response = store(alice, fields | {"ios-text": pasted})

    assert response.status_code == 302
    assert json.loads(credential_for(alice.channel.pk, "ios").secret) == APPLE
