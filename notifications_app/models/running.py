"""Counts of a notification that are exact while its flushes count in shares of its minutes.

A read of such a column adds the shares that are not merged yet: in lists, filters and orders too,
and from the snapshot in which the statement reads the row. The end of a notification sets its
counts, so only running notifications have shares to add.
"""

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models.expressions import Col
from typing_extensions import override

from notifications_app.states import NotificationStatus

_SUM: Final = """(CASE WHEN {row}."status" = '{processing}' THEN {count} + coalesce(
  (SELECT sum(ended.count) FROM notifications_app_outcomeminute ended
   WHERE ended.notification_id = {row}."id" AND ended.shard <> 0 AND ended.code {codes}), 0)::bigint
  ELSE {count} END)"""
_CODES: Final = {"delivered": "= ''", "bounced": "<> ''"}  # the others are codes of bounces


class _RunningCol(Col):
    @override
    def as_sql(self, compiler: Any, connection: Any) -> Any:
        count, parameters = super().as_sql(compiler, connection)
        if self.alias is None:  # in a constraint
            return count, parameters
        name = str(self.target.column).removesuffix("_count")
        return _SUM.format(
            row=compiler.quote_name_unless_alias(self.alias),
            count=count,
            codes=_CODES.get(name, f"= '{name}'"),
            processing=NotificationStatus.PROCESSING,
        ), parameters


if TYPE_CHECKING:
    _Count = models.BigIntegerField[int, int]
    _PositiveCount = models.PositiveBigIntegerField[int, int]
else:
    _Count, _PositiveCount = models.BigIntegerField, models.PositiveBigIntegerField


class _Running:
    """Migrations see the plain field. An UPDATE must not read the column with F()."""

    def get_col(self, alias: Any, output_field: Any = None) -> Any:
        own: Any = self
        return _RunningCol(alias, own, output_field)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()  # type: ignore[misc]
        plain = type(self).__mro__[2].__name__
        return name, f"django.db.models.{plain}", args, kwargs


class RunningCount(_Running, _Count):
    pass


class PositiveRunningCount(_Running, _PositiveCount):
    pass
