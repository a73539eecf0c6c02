from channels_app.api.platform_views import PlatformsView
from channels_app.api.views import ChannelView, ProvidersView, WebPushKeyView
from pushsvc.common.http.routes import endpoint

urlpatterns = [
    endpoint("channel/<id:channel_id>", ChannelView),
    endpoint("channel/<id:channel_id>/providers", ProvidersView),
    endpoint("channel/<id:channel_id>/platforms", PlatformsView),
    endpoint("web-push-key", WebPushKeyView),
]
