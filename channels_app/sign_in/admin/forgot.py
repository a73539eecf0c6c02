"""The page on which users who forgot their password request a link by mail."""

from math import ceil
from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView
from typing_extensions import override

from channels_app.sign_in import mails
from pushsvc.common.console.admin import site
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.http.client_address import client_ip, counted_address
from pushsvc.common.http.ratelimit import Limit, Standing, take


class AddressForm(ConsoleForm):
    email = forms.EmailField(
        label="E-mail",
        max_length=254,
        help_text="The address to which your invitation came.",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )


@method_decorator(never_cache, name="dispatch")
class ForgotPasswordView(TemplateView):
    """Neither the answer nor its time reveals whether a user has the address. 404 unless mails are
    on."""

    template_name = "console/own/forgot_password.html"

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not mails.is_on():
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        quota = settings.RESET_REQUESTS_PER_HOUR
        standing = take(Limit("reset-requests", counted_address(request), quota, 3600))
        if standing is not None and standing.is_refused:
            return self._refused(standing)
        form = AddressForm(request.POST)
        if not form.is_valid():
            return self.render_to_response(self.get_context_data(form=form), status=400)
        address = form.cleaned_data["email"]
        mails.ask_for_link(address=address, asked_from=client_ip(request) or "unknown")
        return self.render_to_response(self.get_context_data(address=address))

    def _refused(self, standing: Standing) -> HttpResponseBase:
        minutes = ceil(standing.reset_seconds / 60)
        answer = self.render_to_response(self.get_context_data(minutes=minutes), status=429)
        for name, value in standing.headers.items():
            answer.headers[name] = value
        answer.headers["Retry-After"] = str(ceil(standing.reset_seconds))
        return answer

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", AddressForm())
        own = {"title": "Forgot your password?"}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | own
