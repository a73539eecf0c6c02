"""The doctor's findings in the console, for superusers."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse

from channels_app.console.access import is_superuser
from pushsvc.common.console.admin import site
from pushsvc.ops.doctor import examine


def doctor_page(request: HttpRequest) -> TemplateResponse:
    """Examines the installation from this web process. Calls no provider."""
    if not is_superuser(request.user):
        raise PermissionDenied
    context = {**site.each_context(request), "title": "Doctor", "findings": list(examine())}
    return TemplateResponse(request, "console/doctor.html", context)
