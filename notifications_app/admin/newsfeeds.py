"""A channel's newsfeeds: the list, the form of a newsfeed, what it did last, and actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self
from urllib.parse import urlsplit

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.models import Role
from notifications_app.admin import stored_send_page
from notifications_app.admin.compose.form import ComposeForm, validated
from notifications_app.admin.schedule_form import read_send_of
from notifications_app.admin.stored_send_page import (
    NewSendPage,
    StoredActs,
    StoredFormPage,
    StoredSendPage,
)
from notifications_app.content.entries import EXAMPLE
from notifications_app.content.values import SendRequest
from notifications_app.models import (
    LEAST_MINUTES,
    MAX_NEWSFEED_URL,
    MOST_A_DAY,
    MOST_MINUTES,
    Newsfeed,
    Notification,
)
from notifications_app.sends.newsfeed_schema import (
    DEFAULT_A_DAY,
    DEFAULT_MINUTES,
    NewsfeedSettings,
    read_newsfeed,
)
from notifications_app.sends.newsfeeds import (
    MOST_NEWSFEEDS,
    newsfeed_check,
    newsfeed_create,
    newsfeed_delete,
    newsfeed_page,
    newsfeed_preview,
    newsfeed_switch,
    newsfeed_update,
)
from notifications_app.sends.publishing import sent_today
from pushsvc.common.store import sql
from pushsvc.common.texts import later

_NUMBERS: Final = frozenset({"every_minutes", "daily_limit"})
_MINUTES: Final = later(
    "Enter %(least)s to %(most)s minutes.", least=LEAST_MINUTES, most=MOST_MINUTES
)
_A_DAY: Final = later("Enter 1 to %(most)s.", most=MOST_A_DAY)
_CODES: Final = ("not_a_number", "out_of_range")
_WORDS: Final[Mapping[tuple[str, str], str]] = {
    **{("every_minutes", code): _MINUTES for code in _CODES},
    **{("daily_limit", code): _A_DAY for code in _CODES},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForm:
    """What is checked, and how often, as text."""

    feed: str = ""
    every_minutes: str = str(DEFAULT_MINUTES)
    daily_limit: str = str(DEFAULT_A_DAY)

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        return cls(**{each.name: post.get(each.name, "").strip() for each in fields(cls)})

    def read(self, attr: str) -> Any:
        """The newsfeed's setting. Raises Invalid."""
        text = self.feed if attr == "url" else getattr(self, attr)
        is_number = text.isascii() and text.isdigit() and len(text) < 9
        value = int(text) if attr in _NUMBERS and is_number else text
        # The other settings that are required are valid, so that only this one is judged.
        body = {"name": "-", "url": "-", attr: value}
        return validated(body, [], NewsfeedSettings.checked)[attr]


def pages(page: Callable[..., URLPattern]) -> list[URLPattern]:
    """The addresses. `page` makes one of a path, a view and a name."""
    all_, one = "newsfeeds/<uuid:channel_id>/", "newsfeeds/<uuid:newsfeed_id>/"
    return [
        page(all_, NewsfeedsPage, "channel_newsfeeds"),
        page(f"{all_}new/", NewNewsfeedPage, "newsfeed_new"),
        page(f"{one}edit/", NewsfeedPage, "newsfeed_edit"),
        page(f"{one}act/", NewsfeedActs, "newsfeed_act"),
    ]


def state_of(newsfeed: Newsfeed) -> tuple[str, str]:
    """As of all stored sends, or that its checks fail."""
    is_failing = newsfeed.is_enabled and newsfeed.failures
    return (gettext("failing"), "warn") if is_failing else stored_send_page.state_of(newsfeed)


class NewsfeedsPage(TabPage):
    title = later("Newsfeeds")
    template_name = "console/channels/newsfeeds.html"
    tab = "channel_newsfeeds"
    http_method_names = ["get", "head"]

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = newsfeed_page(channel_id=self.channel.pk, limit=MOST_NEWSFEEDS, offset=0)
        return super().get_context_data(
            listed=[_told(each) for each in found],
            is_full=len(found) >= MOST_NEWSFEEDS,
            **kwargs,
        )


class _WritingPage(StoredSendPage):
    template_name = "console/notifications/newsfeed.html"
    model = Newsfeed
    own_words = _WORDS
    own_attrs = _NUMBERS | {"url"}

    @override
    def posted(self, post: QueryDict) -> FeedForm:
        return FeedForm.posted(post)

    @override
    def readers(self, own: FeedForm) -> dict[str, Callable[[], Any]]:
        return {
            "url": lambda: own.read("url"),
            "every_minutes": lambda: own.read("every_minutes"),
            "daily_limit": lambda: own.read("daily_limit"),
        }

    @override
    def read_send(self, form: ComposeForm) -> SendRequest:
        return read_send_of(form, read_newsfeed)

    @override
    def own_context(self, own: FeedForm, errors: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {
            "feed": own,
            "feed_errors": errors,
            "most_of_url": MAX_NEWSFEED_URL,
            "entry_placeholders": [f"{{{{ entry.{name} }}}}" for name in EXAMPLE],
        }

    @override
    def said(self, saved: Newsfeed) -> tuple[str, str]:
        words = gettext("The newsfeed “%(newsfeed)s” was saved.") % {"newsfeed": saved}
        return words, reverse("admin:newsfeed_edit", args=[saved.pk])


class NewNewsfeedPage(NewSendPage, _WritingPage):
    title = later("New newsfeed")
    create = staticmethod(newsfeed_create)

    @override
    def first_own(self) -> FeedForm:
        return FeedForm()

    @override
    def first_form(self) -> ComposeForm:
        return ComposeForm(
            title="{{ entry.title }}", body="{{ entry.summary }}", image="{{ entry.image }}"
        )


class NewsfeedPage(StoredFormPage, _WritingPage):
    """A newsfeed, with its last check and what it would send of the newest entry."""

    title = later("Newsfeed")
    update = staticmethod(newsfeed_update)

    @override
    def own_of(self) -> FeedForm:
        newsfeed = self.row
        return FeedForm(
            # The address may contain a password of the feed.
            feed=newsfeed.url if self.may(Role.SENDER) else _host(newsfeed),
            every_minutes=str(newsfeed.every_minutes),
            daily_limit=str(newsfeed.daily_limit),
        )

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        last = Notification.objects.filter(pk=self.row.last_notification_id).first()
        own = {"last": last, "preview": newsfeed_preview(**self.named)}
        return super().get_context_data(**kwargs) | _told(self.row) | own


class NewsfeedActs(StoredActs):
    """Also checks it now."""

    title = later("Newsfeed")
    model = Newsfeed
    switch = staticmethod(newsfeed_switch)
    delete_row = staticmethod(newsfeed_delete)
    is_on = later("The newsfeed is on. Its next check sends nothing.")
    is_off = later("The newsfeed is off.")
    was_deleted = later("The newsfeed “%(newsfeed)s” was deleted.")

    @override
    def still_off(self) -> str:
        return gettext(
            "The newsfeed is still off, because it was changed after you opened this page. Check"
            " it first."
        )

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {**super().acts(), "check": self._check}

    def _check(self, _: QueryDict) -> HttpResponseBase:
        newsfeed_check(**self.named)
        return self.back(gettext("The newsfeed is checked within a minute."))


def _told(newsfeed: Newsfeed) -> dict[str, Any]:
    return {
        "newsfeed": newsfeed,
        "host": _host(newsfeed),
        "state": state_of(newsfeed),
        "sent_today": sent_today(newsfeed, sql.now()),
    }


def _host(newsfeed: Newsfeed) -> str:
    return urlsplit(newsfeed.url).hostname or ""
