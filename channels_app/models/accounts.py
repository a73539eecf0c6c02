"""Accounts, their members, and what signing in stores."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from pushsvc.common.ids import uuid7
from pushsvc.common.texts import later


class Account(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    requires_two_step = models.BooleanField(
        default=False, help_text="Members can do nothing until they set it up."
    )

    @override
    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member of an account may do. A role includes all roles before it."""

    VIEWER = "viewer", later("Viewer: reads everything but secrets")
    WRITER = "writer", later("Writer: writes drafts, and asks a sender to send them")
    SENDER = "sender", later("Sender: composes, schedules, tests and cancels notifications")
    EDITOR = "editor", later("Editor: creates and changes segments")
    MANAGER = "manager", later("Manager: changes channels, keys, credentials; deletes and exports")
    OWNER = "owner", later("Owner: chooses the account's members and their roles")

    def includes(self, other: "Role") -> bool:
        """Whether this role may do everything that `other` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


class Membership(models.Model):
    """A member of staff in an account (see channels_app/console/access.py)."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=7, choices=Role.choices, default=Role.VIEWER)
    gets_alerts = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Whether the member gets mails about the account, as far as the role does.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(
                    role__in=["viewer", "writer", "sender", "editor", "manager", "owner"]
                ),
                name="membership_role",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {self.role}"


class Reader(models.Model):
    """A user as a reader: the language of the user's pages, in which the mails are written."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="reader"
    )
    language = models.CharField(max_length=15, help_text="One of LANGUAGES.")


class CacheEntry(models.Model):
    """The table of Django's database cache, in which django-allauth keeps which codes of two-step
    sign-in were used, and how many were wrong."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)


class Mail(models.Model):
    """A mail that waits to be sent: to an invited user, to the users with `address`, for which a
    new password was requested, or with `subject` and `body` to a member of the account (see
    channels_app/sign_in/mails.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    account = models.ForeignKey(Account, null=True, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=254, blank=True)
    asked_from = models.CharField(max_length=45, blank=True)
    subject = models.CharField(max_length=250, blank=True, default="", db_default="")
    body = models.TextField(blank=True, default="", db_default="")
    least_role = models.CharField(
        max_length=7,
        default=Role.MANAGER,
        db_default=Role.MANAGER,
        help_text="A mail with a body is sent only while its user has this role or more.",
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now(), db_index=True)
