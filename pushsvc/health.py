"""Is the process up, and can it do its work. For load balancers, orchestrators and `make run`."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from drf_spectacular.utils import extend_schema
from kombu import Connection
from kombu.exceptions import OperationalError
from rest_framework.request import Request
from rest_framework.response import Response

from pushsvc.common.drf import ApiView
from pushsvc.common.errors import Unavailable

_BROKER_SECONDS = 1.0


class NotReady(Unavailable):
    code = "not_ready"
    title = "Not ready"

    def __init__(self, missing: list[str]) -> None:
        super().__init__(f"Missing: {', '.join(missing)}.")


@extend_schema(exclude=True)
class HealthView(ApiView):
    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


@extend_schema(exclude=True)
class ReadyView(ApiView):
    def get(self, request: Request) -> Response:
        missing = _missing_of_database()
        if not _is_broker_there():
            missing.append("broker")
        if missing:
            raise NotReady(missing)
        return Response({"status": "ready"})


def _missing_of_database() -> list[str]:
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return ["database"]
    return ["migrations"] if plan else []


def _is_broker_there() -> bool:
    """Dials anew, once; the workers' own connection would wait and try again for long."""
    timeouts = {"socket_timeout": _BROKER_SECONDS, "socket_connect_timeout": _BROKER_SECONDS}
    broker = Connection(
        settings.CELERY_BROKER_URL, connect_timeout=_BROKER_SECONDS, transport_options=timeouts
    )
    try:
        broker.ensure_connection(max_retries=0)
    except OperationalError:
        return False
    finally:
        broker.release()
    return True
