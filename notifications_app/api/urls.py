from notifications_app.api.automation_views import (
    AutomationDaysView,
    AutomationListView,
    AutomationView,
)
from notifications_app.api.decision_views import WinnerView
from notifications_app.api.delivery_settings_views import DeliverySettingsView
from notifications_app.api.delivery_views import DeliveriesExportView
from notifications_app.api.device_views import ClickView, EventsView
from notifications_app.api.explain_views import ExplainView
from notifications_app.api.halt_views import PauseView, ResumeView, StopView
from notifications_app.api.image_views import ImageView
from notifications_app.api.inbox_views import InboxView
from notifications_app.api.newsfeed_views import (
    NewsfeedCheckView,
    NewsfeedListView,
    NewsfeedPreviewView,
    NewsfeedView,
)
from notifications_app.api.person_views import PersonExportView, PersonView
from notifications_app.api.schedule_views import (
    OccurrencesView,
    ScheduleListView,
    ScheduleView,
)
from notifications_app.api.segment_views import SegmentListView, SegmentSizeView, SegmentView
from notifications_app.api.statistics_views import StatisticsView
from notifications_app.api.target_views import NotificationTargetsView
from notifications_app.api.template_views import TemplateListView, TemplateView
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
    endpoint("notification/<id:notification_id>/targets", NotificationTargetsView),
    endpoint("notification/<id:notification_id>/deliveries", DeliveriesExportView),
    endpoint("notification/<id:notification_id>/pause", PauseView),
    endpoint("notification/<id:notification_id>/resume", ResumeView),
    endpoint("notification/<id:notification_id>/stop", StopView),
    endpoint("notification/<id:notification_id>/winner", WinnerView),
    endpoint("channel/<id:channel_id>/delivery-settings", DeliverySettingsView),
    endpoint("channel/<id:channel_id>/statistics", StatisticsView),
    endpoint("channel/<id:channel_id>/segments", SegmentListView),
    endpoint("channel/<id:channel_id>/segments/<id:segment_id>", SegmentView),
    endpoint("channel/<id:channel_id>/segments/<id:segment_id>/size", SegmentSizeView),
    endpoint("channel/<id:channel_id>/templates", TemplateListView),
    endpoint("channel/<id:channel_id>/templates/<id:template_id>", TemplateView),
    endpoint("channel/<id:channel_id>/schedules", ScheduleListView),
    endpoint("channel/<id:channel_id>/schedules/<id:schedule_id>", ScheduleView),
    endpoint("channel/<id:channel_id>/schedules/<id:schedule_id>/occurrences", OccurrencesView),
    endpoint("channel/<id:channel_id>/automations", AutomationListView),
    endpoint("channel/<id:channel_id>/automations/<id:automation_id>", AutomationView),
    endpoint("channel/<id:channel_id>/automations/<id:automation_id>/days", AutomationDaysView),
    endpoint("channel/<id:channel_id>/newsfeeds", NewsfeedListView),
    endpoint("channel/<id:channel_id>/newsfeeds/<id:newsfeed_id>", NewsfeedView),
    endpoint("channel/<id:channel_id>/newsfeeds/<id:newsfeed_id>/check", NewsfeedCheckView),
    endpoint("channel/<id:channel_id>/newsfeeds/<id:newsfeed_id>/preview", NewsfeedPreviewView),
    endpoint("channel/<id:channel_id>/explain", ExplainView),
    endpoint("channel/<id:channel_id>/person", PersonView),
    endpoint("channel/<id:channel_id>/person/export", PersonExportView),
    endpoint("inbox", InboxView),
    endpoint("images/<str:name>", ImageView),
    endpoint("events", EventsView),
    endpoint("c/<token>", ClickView),
]
