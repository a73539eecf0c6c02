from django.apps import AppConfig
from typing_extensions import override


class PushsvcConfig(AppConfig):
    name = "pushsvc"
    verbose_name = "pushsvc"

    @override
    def ready(self) -> None:
        """Imports the Celery application, with which every process with Django sends tasks.

        The package `pushsvc` does not import it, because the sandbox and the embedded servers
        need neither Django nor Celery."""
        import pushsvc.celery  # noqa: F401
