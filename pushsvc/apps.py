from django.apps import AppConfig
from typing_extensions import override


class PushsvcConfig(AppConfig):
    name = "pushsvc"
    verbose_name = "pushsvc"

    @override
    def ready(self) -> None:
        """Imports what every process with Django needs: the Celery application, to send tasks, and
        the loading of rows.


        The package `pushsvc` does not import them, because the sandbox and the embedded servers
        need neither Django nor Celery."""
        import pushsvc.celery
        import pushsvc.common.store.loading  # noqa: F401
