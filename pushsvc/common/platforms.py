from typing import Final

from django.db import models


class Platform(models.TextChoices):
    WEB = "web"
    ANDROID = "android"
    IOS = "ios"


# For people. Not the labels of the choices, which would be in the migrations.
PLATFORM_NAMES: Final = {"web": "Web", "android": "Android", "ios": "iOS"}
