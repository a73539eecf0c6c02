from channels_app.api.audience_views import AudienceView
from channels_app.api.identity_key_views import IdentityKeyListView, IdentityKeyView
from channels_app.api.platform_views import PlatformsView
from channels_app.api.views import ChannelView, ProvidersView, WebPushKeyView
from pushsvc.common.http.routes import endpoint

urlpatterns = [
    endpoint("channel/<id:channel_id>", ChannelView),
    endpoint("channel/<id:channel_id>/providers", ProvidersView),
    endpoint("channel/<id:channel_id>/platforms", PlatformsView),
    endpoint("channel/<id:channel_id>/audience", AudienceView),
    endpoint("channel/<id:channel_id>/identity-keys", IdentityKeyListView),
    endpoint("channel/<id:channel_id>/identity-keys/<id:identity_key_id>", IdentityKeyView),
    endpoint("web-push-key", WebPushKeyView),
]
