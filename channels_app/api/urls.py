from channels_app.api.audience_views import AudienceView
from channels_app.api.identity_key_views import IdentityKeyListView, IdentityKeyView
from channels_app.api.platform_views import PlatformsView
from channels_app.api.views import ChannelView, ProvidersView, WebPushKeyView
from channels_app.api.web_push_key_views import WebPushKeyListView
from channels_app.api.webhook_views import (
    WebhookListView,
    WebhookMessagesView,
    WebhookReplayView,
    WebhookSecretView,
    WebhookTestView,
    WebhookView,
)
from pushsvc.common.http.routes import endpoint

_WEBHOOK = "channel/<id:channel_id>/webhooks/<id:webhook_id>"

urlpatterns = [
    endpoint("channel/<id:channel_id>", ChannelView),
    endpoint("channel/<id:channel_id>/providers", ProvidersView),
    endpoint("channel/<id:channel_id>/platforms", PlatformsView),
    endpoint("channel/<id:channel_id>/audience", AudienceView),
    endpoint("channel/<id:channel_id>/identity-keys", IdentityKeyListView),
    endpoint("channel/<id:channel_id>/identity-keys/<id:identity_key_id>", IdentityKeyView),
    endpoint("channel/<id:channel_id>/webhooks", WebhookListView),
    endpoint(_WEBHOOK, WebhookView),
    endpoint(f"{_WEBHOOK}/rotate-secret", WebhookSecretView),
    endpoint(f"{_WEBHOOK}/test", WebhookTestView),
    endpoint(f"{_WEBHOOK}/replay", WebhookReplayView),
    endpoint(f"{_WEBHOOK}/messages", WebhookMessagesView),
    endpoint("channel/<id:channel_id>/web-push-keys", WebPushKeyListView),
    endpoint("web-push-key", WebPushKeyView),
]
