from channels_app.api.views import ChannelView, ProvidersView, WebPushKeyView
from pushsvc.common.http.routes import endpoint

urlpatterns = [
    endpoint("channel/<id:channel_id>", ChannelView),
    endpoint("channel/<id:channel_id>/providers", ProvidersView),
    endpoint("web-push-key", WebPushKeyView),
]
