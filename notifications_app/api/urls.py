from notifications_app.api.views import (
    CancelView,
    NotificationListView,
    NotificationView,
    SendView,
)
from pushsvc.common.routes import endpoint

urlpatterns = [
    endpoint("send-notification", SendView),
    endpoint("cancel-notification/<id:notification_id>", CancelView),
    endpoint("notifications/<id:channel_id>", NotificationListView),
    endpoint("notification/<id:notification_id>", NotificationView),
]
