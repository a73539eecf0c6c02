"""A channel's tags: a list with counts, deletion, and suggestions while the user types."""

from typing import Any

from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ChannelPage
from channels_app.models import Role
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import is_tag_start
from pushsvc.common.texts import later
from subscriptions_app.tags.selectors import tag_names, tags_page
from subscriptions_app.tags.services import tag_delete

_SHOWN = 50
_OFFERED = 20


class TagsPage(TabPage):
    """GET shows the tags that begin with `prefix` and follow `after`. POST deletes the tag that the
    form names."""

    title = later("Tags")
    template_name = "console/channels/tags.html"
    tab = "channel_tags"
    post_role = Role.MANAGER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        tag = request.POST.get("tag", "")
        try:
            tag_delete(channel=self.channel, tag=self._checked(tag))
        except NotFound as error:
            raise Http404 from error
        return self.back(
            gettext("The tag “%(tag)s” is being removed from its devices.") % {"tag": tag}
        )

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        prefix, after = (self._given(name) for name in ("prefix", "after"))
        found = tags_page(channel_id=self.channel.pk, limit=_SHOWN + 1, prefix=prefix, after=after)
        return super().get_context_data(
            listed=found[:_SHOWN],
            prefix=prefix,
            is_first=not after,
            following=found[_SHOWN - 1].tag if len(found) > _SHOWN else "",
            **kwargs,
        )

    def _given(self, name: str) -> str:
        return self._checked(self.request.GET.get(name, ""))

    @staticmethod
    def _checked(text: str) -> str:
        """The prefix to search. Text that cannot begin a tag finds no tags."""
        return text if is_tag_start(text) else "~"


class TagNamesPage(ChannelPage):
    """The first tags that begin with `prefix`, as JSON. Text that cannot begin a tag finds none."""

    title = later("Tags")
    http_method_names = ["get", "head"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> JsonResponse:
        prefix = request.GET.get("prefix", "")
        is_fine = is_tag_start(prefix)
        found = tag_names(self.channel.pk, limit=_OFFERED, prefix=prefix) if is_fine else []
        return JsonResponse({"tags": found})
