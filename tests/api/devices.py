"""Subscriptions as devices make them, and their state afterwards."""

from channels_app.selectors import channel_totals
from subscriptions_app.devices.services import GoneSubscription, subscriptions_expire_or_prove
from subscriptions_app.models import Subscription

HERE = "https://fcm.googleapis.com/fcm/send/here"
THERE = "https://updates.push.services.mozilla.com/wpush/v2/there"
ANDROID_TOKEN = "dF3x:APA91bH_token-of-a-phone"
FID = "cdEf_-0123456789abcdef"
IOS_TOKEN = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"


def subscribed(owner, body, status=201):
    response = owner.subscribe(body)
    assert response.status_code == status, response.content
    return Subscription.objects.get(id=response.json()["subscriptionId"])


def subscribers(owner):
    return channel_totals(owner.channel.id)


def expire(subscription, code="endpoint_gone"):
    gone = GoneSubscription(subscription.id, subscription.registered_at, code)
    assert subscriptions_expire_or_prove(channel_id=subscription.channel_id, gone=[gone]) == 1
