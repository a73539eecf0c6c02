"""Links with which a user chooses a password: shown once on a page, or sent by mail."""

from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from channels_app.accounts.users import check_may_link, check_may_see_link
from channels_app.console.pages import ConsolePage
from channels_app.models import Account
from channels_app.sign_in import mails
from channels_app.sign_in.passwords import set_password_path
from pushsvc.common.http.origin import own_origin


class LinksPage(ConsolePage):
    """A page that creates such links. `account`: the account whose owner may create them."""

    account: Account | None = None

    def show_link(self, user: User) -> HttpResponseBase:
        """Shows a link. Raises Invalid."""
        check_may_see_link(by=self.staff, user=user)
        account_id = self.account.pk if self.account else None
        path = set_password_path(user=user, account_id=account_id)
        link = f"{own_origin(self.request)}{path}"
        return self.shown_once(link=link, linked=user)

    def mail_link(self, user: User) -> str:
        """Sends the user a mail with a link. Returns a message about it. Raises Invalid."""
        check_may_link(by=self.staff, user=user)
        mails.invite(user=user, account=self.account)
        return gettext("%(user)s will receive a link to choose a password at %(email)s.") % {
            "user": user,
            "email": user.email,
        }
