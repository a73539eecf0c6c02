"""Changes and reads a channel's templates, and applies them to sends."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import REMOVABLE_FIELDS
from notifications_app.errors import TemplateNameTaken, TemplateNotFound
from notifications_app.models import MAX_TEMPLATE_NAME, Template
from pushsvc.common.errors import FieldError, Invalid, NotFound, Outdated
from pushsvc.common.http.fields import Id, StrictSerializer
from pushsvc.common.store import sql

MAX_TEMPLATES: Final = 1_000  # of each channel
_LABEL: Final = Template._meta.label_lower


def template_create(*, channel: Channel, name: str, content: Mapping[str, Any]) -> Template:
    """Creates a template. `content` is checked by TemplateContent. Raises TemplateNameTaken, and
    Invalid for a name without letters or if the channel has MAX_TEMPLATES."""
    _check_name(name)
    with sql.unless_taken(TemplateNameTaken):
        # Locks the channel, so that no other template is added before the transaction ends.
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        if _of(channel.pk).count() >= MAX_TEMPLATES:
            detail = gettext("A channel has at most %(most)s templates.") % {
                "most": f"{MAX_TEMPLATES:,}"
            }
            raise Invalid([FieldError("name", "too_many", detail)])
        template = Template.objects.create(
            channel=channel, name=name, content_json=_as_json(content)
        )
        audit.record(template, audit.Action.CREATE, after=_audited(template))
    return template


def template_update(
    *,
    channel_id: UUID,
    template_id: UUID,
    name: str,
    content: Mapping[str, Any],
    seen: str | None = None,
) -> Template:
    """Replaces name and content. Accepted notifications keep the old content. Safe to repeat.

    Raises NotFound, Invalid, TemplateNameTaken, and Outdated if `seen`, a version, is not the
    template's.
    """
    _check_name(name)
    with sql.unless_taken(TemplateNameTaken):
        template = _locked(channel_id, template_id)
        if seen is not None and seen != template.version:
            raise Outdated(by=audit.last_actor(template))
        before, was = _audited(template), template.content
        own = Template.objects.filter(pk=template.pk)
        own.update(name=name, content_json=_as_json(content), updated_at=Now())
        template.refresh_from_db()
        note = _unshown(was, template.content)
        audit.record(template, audit.Action.UPDATE, before, _audited(template), note=note)
    return template


@transaction.atomic
def template_delete(*, channel_id: UUID, template_id: UUID) -> None:
    """Deletes the template. Accepted notifications keep the content. Raises NotFound."""
    template = _locked(channel_id, template_id)
    audit.record(template, audit.Action.DELETE, _audited(template))
    template.delete()


def template_get(*, channel_id: UUID, template_id: UUID) -> Template:
    """Returns the template. Raises NotFound, also for a template of another channel."""
    return _one(_of(channel_id).filter(id=template_id))


def template_find(*, channel_id: UUID, template_id: UUID | None) -> Template | None:
    """The template, or None if there is no id or the template no longer exists."""
    return None if template_id is None else _of(channel_id).filter(id=template_id).first()


def template_page(*, channel_id: UUID, limit: int, offset: int, words: str = "") -> list[Template]:
    """A page of the templates with `words` in their names, newest first. Empty if the offset is
    past the end."""
    found = _of(channel_id).filter(name__icontains=words) if words else _of(channel_id)
    return list(found.order_by("-created_at", "-id")[offset : offset + limit])


def template_names(channel_id: UUID) -> list[tuple[UUID, str]]:
    """Ids and names of all templates, in the order of the names."""
    return list(_of(channel_id).order_by("name").values_list("pk", "name"))


def with_template(channel_id: UUID, body: Any) -> Any:
    """The body of a send with the content of its template. Fields of the send replace those of the
    template, and null removes those that a send may lack. Raises TemplateNotFound, and DRF's
    ValidationError for a malformed id."""
    if not isinstance(body, dict) or body.get("template_id") is None:
        return body
    template = _of(channel_id).filter(id=_Named.checked(body)["template_id"]).first()
    if template is None:
        raise TemplateNotFound
    removable = (*REMOVABLE_FIELDS, "body")  # without a body the send is refused
    given = {n: each for n, each in body.items() if each is not None or n in removable}
    return {**template.content, **given}


class _Named(StrictSerializer):
    refuse_unknown = False

    template_id = Id()


def _of(channel_id: UUID) -> QuerySet[Template]:
    return Template.objects.filter(channel_id=channel_id)


def _one(templates: QuerySet[Template]) -> Template:
    found = templates.first()
    if found is None:
        raise NotFound(gettext("There is no such template."))
    return found


def _locked(channel_id: UUID, template_id: UUID) -> Template:
    return _one(_of(channel_id).filter(id=template_id).select_for_update())


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_TEMPLATE_NAME or "\x00" in name:
        detail = gettext("Must have 1 to %(most)s characters.") % {"most": MAX_TEMPLATE_NAME}
        raise Invalid([FieldError("name", "malformed", detail)])


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _audited(template: Template) -> dict[str, Any]:
    """The values that the audit log may show. Not `data`, which can contain personal data."""
    values = {"name": template.name, **template.content}
    return {name: value for name, value in values.items() if name in audit.SHOWN[_LABEL]}


def _unshown(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The names of changed fields that the audit log does not show."""
    names = sorted((was.keys() | now.keys()) - set(audit.SHOWN[_LABEL]))
    # As JSON, because the order of the names in `data` counts.
    changed = [name for name in names if json.dumps(was.get(name)) != json.dumps(now.get(name))]
    return f"Also changed: {', '.join(changed)}." if changed else ""
