"""The images of a channel, and the check whether an address returns an image."""

from dataclasses import asdict
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ChannelPage, FormPage, id_or_404, require
from channels_app.models import Role
from notifications_app.admin.compose.sender import WriterPage
from notifications_app.images.bucket import BucketFailed
from notifications_app.images.decoding import MOST_UPLOADED_BYTES, Use
from notifications_app.images.services import (
    KEPT_DAYS,
    MOST_IMAGES,
    image_add,
    image_remove,
    images_of,
    own_image_named,
)
from notifications_app.models import Image
from notifications_app.sends.image_check import NOT_HTTPS, ImageCheck, image_check
from pushsvc.common.console.figures import grouped
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import TooManyRequests
from pushsvc.common.http.fields import MAX_URL_LENGTH
from pushsvc.common.http.origin import own_origin
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.texts import later

CHECKS_OF_A_USER: Final = 20
CHECKS_OF_AN_ACCOUNT: Final = 60
_USES: Final = {Use.IMAGE: later("Large image"), Use.ICON: later("Icon")}


class ImageForm(ConsoleForm):
    file = forms.FileField(
        label=later("Image"),
        widget=forms.ClearableFileInput(
            attrs={
                "accept": "image/png,image/jpeg,image/gif,image/webp",
                "data-most": MOST_UPLOADED_BYTES,
            }
        ),
        error_messages={
            "required": later("Choose a file."),
            "missing": later("Choose a file."),
            "invalid": later("Choose a file."),
            "empty": later("The file is empty."),
        },
        help_text=later("PNG, JPEG, GIF or WebP, up to 5 MB and 16 megapixels."),
    )
    use = forms.ChoiceField(label=later("Used as"), choices=_USES, initial=Use.IMAGE)


class _Adding(ChannelPage):
    def added(self, form: ImageForm) -> Image | None:
        """The image of the posted form. If it is refused, the form has the errors."""
        if not form.is_valid():
            return None
        user = self.staff
        try:
            enforce(Limit("image-uploads", str(user.pk), settings.IMAGE_UPLOADS_PER_MINUTE, 60))
            with form.showing_errors():
                data, use = form.cleaned_data["file"].read(), Use(form.cleaned_data["use"])
                return image_add(channel=self.channel, data=data, use=use, user=user)
        except (TooManyRequests, BucketFailed) as error:
            form.add_error("file", error.detail)
        return None

    def form_of(self, request: HttpRequest) -> ImageForm:
        return ImageForm(request.POST, request.FILES)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        origin = own_origin(self.request)
        return super().get_context_data(
            images=[{"image": each, "url": address_of(origin, each)} for each in self.images()],
            is_https=origin.startswith("https://"),
            **kwargs,
        )

    def images(self) -> list[Image]:
        return list(images_of(self.channel.pk))


class ImagesPage(TabPage, _Adding, FormPage):
    """POST adds an image, or deletes the one that the form names, which requires a sender."""

    title = later("Images")
    template_name = "console/channels/images.html"
    tab = "channel_images"
    post_role = Role.WRITER
    form_class = ImageForm

    @override
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if "image" in request.POST:
            return self._remove(request.POST["image"])
        form = self.form_of(request)
        added = self.added(form)
        if added is None:
            return self.refused(form=form)
        return self.back(
            gettext("The image was added, %(width)s by %(height)s pixels.")
            % {"width": added.width, "height": added.height}
        )

    def _remove(self, image_id: str) -> HttpResponseBase:
        require(self.may(Role.SENDER), Role.SENDER)
        own = Image.objects.filter(channel=self.channel).defer("content")
        image = own.filter(pk=id_or_404(image_id)).first()
        if image is None:
            raise Http404
        image_remove(image)
        return self.back(gettext("The image was deleted."))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            most=MOST_IMAGES, kept_days=KEPT_DAYS, may_add=self.may(Role.WRITER), **kwargs
        )


class ChoosePart(_Adding):
    """The images to choose from, in a form that writes a notification. POST adds one, which the
    form then chooses."""

    title = later("Choose an image")
    template_name = "console/notifications/writing/images_shown.html"
    role = Role.WRITER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = self.form_of(request)
        return self.render_to_response(self.get_context_data(new=self.added(form), form=form))


class ImageCheckPage(WriterPage):
    """POST only, with `channel` and `address`. Both limits are per minute."""

    title = later("Check an image")
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> JsonResponse:
        address = request.POST.get("address", "").strip()
        own = own_image_named(self.chosen.pk, address)
        if own is not None and address == address_of(own_origin(request), own):
            return JsonResponse(asdict(_check_of(own, address)))
        try:
            enforce(Limit("image-checks", str(request.user.pk), CHECKS_OF_A_USER, 60))
            account = str(self.chosen.account_id)
            enforce(Limit("account-image-checks", account, CHECKS_OF_AN_ACCOUNT, 60))
        except TooManyRequests as error:
            return JsonResponse({"detail": error.detail}, status=error.status)
        return JsonResponse(asdict(image_check(address[: MAX_URL_LENGTH + 1])))


def address_of(origin: str, image: Image) -> str:
    """The address at which devices load the image."""
    return f"{origin}/images/{image}"


def _check_of(image: Image, address: str) -> ImageCheck:
    """Of an image of the service itself, which needs no request. The preview shows it even if
    devices would not."""
    kind = "PNG" if image.kind == "png" else "JPEG"
    error = "" if address.startswith("https://") else NOT_HTTPS
    return ImageCheck(
        error,
        gettext("%(kind)s, %(value)s KB")
        % {"kind": kind, "value": grouped(-(-image.size // 1000))},
    )
