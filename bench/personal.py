"""Compares the cost of a send with three placeholders with that of a plain send.

Both go to the same devices through one worker process, in turn in each round. Each device has three
attributes. The aim is for iOS, which has the least other work for a message, so that the cost of
texts shows most.
"""

from typing import Any, Final

from bench.results import Options, Result
from bench.texts import measure_beside_plain
from bench.work import BODY, TITLE
from pushsvc.common.platforms import Platform

_PERSONAL: Final[dict[str, Any]] = {
    "title": f"{TITLE} {{{{ first_name | default: 'there' }}}}",
    "body": BODY[:-40] + "{{ city }} {{ points | round }}",
    "personalize": True,
}


def ios(options: Options) -> Result:
    return _beside_plain(Platform.IOS, options, "≥ 0.90")


def android(options: Options) -> Result:
    return _beside_plain(Platform.ANDROID, options)


def web(options: Options) -> Result:
    return _beside_plain(Platform.WEB, options)


def _beside_plain(platform: Platform, options: Options, aim: str = "") -> Result:
    return measure_beside_plain(
        options, _know, "three placeholders", aim, platform=platform, **_PERSONAL
    )


def _know() -> None:
    """Gives each subscription its own attributes."""
    from subscriptions_app.models import Subscription

    rows = list(Subscription.objects.order_by("id"))
    for number, row in enumerate(rows):
        row.attributes = {"first_name": f"Anna {number}", "city": "Köln", "points": number / 7}
    Subscription.objects.bulk_update(rows, ["attributes"], batch_size=1_000)
