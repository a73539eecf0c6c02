"""The page on which members choose whether they get alerts and requests for approval by mail."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.accounts.members import member_alerts_set
from channels_app.console.pages import ConsolePage
from channels_app.models import Membership, Role
from channels_app.sign_in import mails
from pushsvc.common.texts import later


class OwnAlertsPage(ConsolePage):
    """A user's own choices, for each account in which the user can get mails.

    Saving changes only what differs from the page as it was shown (`shown` and `was`), so that it
    undoes no choice that was made elsewhere meanwhile.
    """

    title = later("Alerts by mail")
    template_name = "console/accounts/alerts.html"

    @transaction.atomic
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        shown, was, wanted = (
            set(request.POST.getlist(name)) for name in ("shown", "was", "account")
        )
        for membership in self._own():
            account = str(membership.account_id)
            if account in shown and (account in was) != (account in wanted):
                member_alerts_set(membership=membership, gets_alerts=account in wanted)
        messages.success(request, gettext("Your choice was saved."))
        return HttpResponseRedirect(reverse("admin:own_alerts"))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            own=self._own(), is_on=mails.is_on(), address=self.staff.email, **kwargs
        )

    def _own(self) -> QuerySet[Membership]:
        own = Membership.objects.filter(user=self.staff).exclude(role=Role.VIEWER)
        return own.select_related("account").order_by("account__name", "account_id")
