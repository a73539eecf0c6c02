"""Disables a schedule or an automation whose send the service refused, and tells its owner."""

from typing import Any

from channels_app import audit
from channels_app.feeds import EventKind, message_add
from pushsvc.common.errors import Invalid, PushsvcError

_KINDS = {"schedule": EventKind.SCHEDULE_DISABLED, "automation": EventKind.AUTOMATION_DISABLED}


def code_of(error: PushsvcError) -> str:
    """The most specific code."""
    return error.errors[0].code if isinstance(error, Invalid) else error.code


def disable(row: Any, code: str, detail: str, **values: Any) -> None:
    """Disables the locked row. `values`: of other columns."""
    name = row._meta.model_name
    type(row).objects.filter(pk=row.pk).update(is_enabled=False, disabled_code=code, **values)
    audit.record(
        row,
        audit.Action.UPDATE,
        {"is_enabled": True, "disabled_code": ""},
        {"is_enabled": False, "disabled_code": code},
        note=f"The {name} was disabled: {detail}",
    )
    about = {f"{name}_id": str(row.pk), "name": row.name, "code": code, "detail": detail[:200]}
    message_add(_KINDS[name], row.channel_id, **about)
