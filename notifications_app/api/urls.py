from notifications_app.api.device_views import ClickView, EventsView
from notifications_app.api.halt_views import PauseView, ResumeView, StopView
from notifications_app.api.segment_views import SegmentListView, SegmentSizeView, SegmentView
from notifications_app.api.views import (
    CancelView,
    NotificationDetailsView,
    NotificationListView,
    NotificationView,
    SendView,
)
from pushsvc.common.http.routes import endpoint

urlpatterns = [
    endpoint("send-notification", SendView),
    endpoint("cancel-notification/<id:notification_id>", CancelView),
    endpoint("notifications/<id:channel_id>", NotificationListView),
    endpoint("notification/<id:notification_id>", NotificationView),
    endpoint("notification/<id:notification_id>/details", NotificationDetailsView),
    endpoint("notification/<id:notification_id>/pause", PauseView),
    endpoint("notification/<id:notification_id>/resume", ResumeView),
    endpoint("notification/<id:notification_id>/stop", StopView),
    endpoint("channel/<id:channel_id>/segments", SegmentListView),
    endpoint("channel/<id:channel_id>/segments/<id:segment_id>", SegmentView),
    endpoint("channel/<id:channel_id>/segments/<id:segment_id>/size", SegmentSizeView),
    endpoint("events", EventsView),
    endpoint("c/<token>", ClickView),
]
