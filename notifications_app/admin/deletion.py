"""The page on which owners delete a channel, and undo it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage
from channels_app.models import GRACE, Role
from channels_app.selectors import channel_totals
from notifications_app.deletion import deletion_ask, deletion_undo
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.store import sql
from pushsvc.common.texts import later


class DeletionPage(TabPage, ActsPage):
    title = later("Delete")
    template_name = "console/channels/deletion.html"
    tab = "channel_settings"
    role = Role.OWNER
    changes_deleted = True

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"delete": self._delete, "undo": self._undo}

    @override
    def own_url(self) -> str:
        return reverse("admin:channel_deletion", args=[self.channel.pk])

    def _delete(self, form: QueryDict) -> HttpResponseBase:
        if _letters(form.get("name", "")) != _letters(self.channel.name):
            detail = gettext("It is not being deleted, because its name was not typed.")
            raise Invalid([FieldError("name", "malformed", detail)])
        deletion_ask(channel_id=self.channel.pk)
        return self.back(gettext("The channel is being deleted. You can undo this for a day."))

    def _undo(self, _form: QueryDict) -> HttpResponseBase:
        deletion_undo(channel_id=self.channel.pk)
        return self.back(
            gettext("The channel is kept. Resume the notifications that are still paused.")
        )

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        deleted_at = self.channel.deleted_at
        return super().get_context_data(
            totals=channel_totals(self.channel.pk),
            grace_hours=int(GRACE.total_seconds() // 3600),
            may_undo=deleted_at is not None and sql.now() < deleted_at,
            **kwargs,
        )


def _letters(name: str) -> str:
    """The name without white space, because a page shows several spaces as one."""
    return "".join(name.split())
