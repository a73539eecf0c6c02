from pushsvc.common.http.routes import endpoint
from subscriptions_app.api.category_views import CategoryListView, CategoryView, PreferencesView
from subscriptions_app.api.export_views import SubscriptionsExportView
from subscriptions_app.api.import_views import ImportView
from subscriptions_app.api.people_views import PeopleDevicesView
from subscriptions_app.api.prompt_views import PromptEventsView, PromptView
from subscriptions_app.api.tag_views import TagListView, TagMembersView, TagView
from subscriptions_app.api.views import SubscribeView, UnsubscribeView

urlpatterns = [
    endpoint("subscribe", SubscribeView),
    endpoint("unsubscribe", UnsubscribeView),
    endpoint("preferences", PreferencesView),
    endpoint("prompt", PromptView),
    endpoint("prompt-events", PromptEventsView),
    endpoint("channel/<id:channel_id>/categories", CategoryListView),
    endpoint("channel/<id:channel_id>/categories/<slug:category_key>", CategoryView),
    endpoint("channel/<id:channel_id>/people/devices", PeopleDevicesView),
    endpoint("channel/<id:channel_id>/subscriptions", SubscriptionsExportView),
    endpoint("channel/<id:channel_id>/subscriptions/import", ImportView),
    endpoint("channel/<id:channel_id>/tags", TagListView),
    endpoint("channel/<id:channel_id>/tags/<tag:tag>", TagView),
    endpoint("channel/<id:channel_id>/tags/<tag:tag>/members", TagMembersView),
]
