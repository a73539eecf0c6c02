from pushsvc.common.http.routes import endpoint
from subscriptions_app.api.views import SubscribeView, UnsubscribeView

urlpatterns = [
    endpoint("subscribe", SubscribeView),
    endpoint("unsubscribe", UnsubscribeView),
]
