"""Checks for the compose form whether an address returns an image."""

from dataclasses import asdict
from typing import Final

from django.http import HttpRequest, JsonResponse

from notifications_app.admin.compose.sender import WriterPage
from notifications_app.sends.image_check import image_check
from pushsvc.common.errors import TooManyRequests
from pushsvc.common.http.fields import MAX_URL_LENGTH
from pushsvc.common.http.ratelimit import Limit, enforce

CHECKS_OF_A_USER: Final = 20
CHECKS_OF_AN_ACCOUNT: Final = 60


class ImageCheckPage(WriterPage):
    """POST only, with `channel` and `address`. Both limits are per minute."""

    title = "Check an image"
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> JsonResponse:
        address = request.POST.get("address", "").strip()
        try:
            enforce(Limit("image-checks", str(request.user.pk), CHECKS_OF_A_USER, 60))
            account = str(self.chosen.account_id)
            enforce(Limit("account-image-checks", account, CHECKS_OF_AN_ACCOUNT, 60))
        except TooManyRequests as error:
            return JsonResponse({"detail": error.detail}, status=error.status)
        return JsonResponse(asdict(image_check(address[: MAX_URL_LENGTH + 1])))
