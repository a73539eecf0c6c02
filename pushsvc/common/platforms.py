from django.db import models


class Platform(models.TextChoices):
    WEB = "web"
    ANDROID = "android"
    IOS = "ios"
