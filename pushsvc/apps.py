from django.apps import AppConfig
from typing_extensions import override


class PushsvcConfig(AppConfig):
    name = "pushsvc"
    verbose_name = "pushsvc"

    @override
    def ready(self) -> None:
        """Every process with Django sends tasks through our Celery application. The package itself
        does not import it: the sandbox and the embedded servers need neither Django nor Celery."""
        import pushsvc.celery  # noqa: F401
