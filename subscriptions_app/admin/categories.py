"""A channel's categories: a list with subscribers' choices, and forms to change categories."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.db import transaction
from django.http import Http404, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage, require
from channels_app.console.shared_forms import SharedForm, save_shared
from channels_app.models import Role
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import NotFound
from pushsvc.common.texts import later
from subscriptions_app.categories.consent import choices_seen
from subscriptions_app.categories.services import (
    category_archive,
    category_create,
    category_locked,
    category_update,
)
from subscriptions_app.models import (
    CATEGORY_KEY,
    MAX_CATEGORY_DESCRIPTION,
    MAX_CATEGORY_KEY,
    MAX_CATEGORY_NAME,
    Category,
)

_NEW = "new-%s"  # the ids of the fields of a new category


class CategoryForm(ConsoleForm):
    key = forms.RegexField(
        rf"^{CATEGORY_KEY}\Z",
        label=later("Key"),
        max_length=MAX_CATEGORY_KEY,
        strip=False,
        help_text=later(
            "Used in API requests. Allowed characters: a-z, 0-9, _ and -. It cannot be changed "
            "later."
        ),
        widget=forms.TextInput(attrs={"placeholder": "offers", "pattern": r"[a-z0-9_\-]+"}),
    )
    name = forms.CharField(label=later("Name"), max_length=MAX_CATEGORY_NAME)
    description = forms.CharField(
        label=later("Description"), max_length=MAX_CATEGORY_DESCRIPTION, required=False
    )
    default = forms.BooleanField(label=later("Subscribers receive it by default"), required=False)


class CategoryChangeForm(SharedForm):
    audited_as = {"default": ["chosen_by_default"]}

    name = forms.CharField(max_length=MAX_CATEGORY_NAME)
    description = forms.CharField(max_length=MAX_CATEGORY_DESCRIPTION, required=False)
    default = forms.BooleanField(label=later("Subscribers receive it by default"), required=False)

    @classmethod
    def of(cls, category: Category, data: QueryDict | None = None) -> "CategoryChangeForm":
        own = {"name": category.name, "description": category.description}
        initial = own | {"default": category.chosen_by_default}
        return cls(data, initial=initial, auto_id=f"{category.key}-%s")


class CategoriesPage(TabPage, ActsPage):
    title = later("Categories")
    template_name = "console/channels/categories.html"
    tab = "channel_categories"
    post_role = Role.EDITOR

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "add": self._add,
            "change": self._change,
            "archive": self._archive,
        }

    @override
    def own_url(self) -> str:
        return reverse(f"admin:{self.tab}", args=[self.channel.pk])

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        seen, looked_at = choices_seen(self.channel.pk)
        changing = kwargs.pop("changing", None)
        own = [CategoryChangeForm.of(each.category) for each in seen]
        shown = [
            changing if changing and changing.auto_id == each.auto_id else each for each in own
        ]
        kwargs.setdefault("adding", CategoryForm(auto_id=_NEW))
        return super().get_context_data(
            categories=list(zip(seen, shown, strict=True)),
            changing=changing,
            looked_at=looked_at,
            may_edit=self.may(Role.EDITOR),
            **kwargs,
        )

    def _add(self, post: QueryDict) -> HttpResponseBase:
        form = CategoryForm(post, auto_id=_NEW)
        if form.is_valid():
            with form.showing_errors():
                category = category_create(channel=self.channel, **form.cleaned_data)
                return self.back(
                    gettext("The category “%(category)s” was created.") % {"category": category}
                )
        return self.refused(adding=form)

    @transaction.atomic
    def _change(self, post: QueryDict) -> HttpResponseBase:
        try:
            category = category_locked(self.channel.pk, post.get("key", ""))
        except NotFound as error:
            raise Http404 from error

        def accept(form: CategoryChangeForm) -> HttpResponseBase:
            changed = category_update(
                channel_id=self.channel.pk, key=category.key, **form.cleaned_data
            )
            return self.back(
                gettext("The category “%(category)s” was changed.") % {"category": changed}
            )

        return save_shared(
            self, category, partial(CategoryChangeForm.of, category), accept, "changing"
        )

    def _archive(self, post: QueryDict) -> HttpResponseBase:
        require(self.may(Role.MANAGER), Role.MANAGER)
        try:
            category_archive(channel_id=self.channel.pk, key=post.get("key", ""))
        except NotFound as error:
            raise Http404 from error
        return self.back(gettext("The category was archived."))
