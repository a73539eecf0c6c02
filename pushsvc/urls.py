"""Every URL of the service."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from channels_app.api.urls import urlpatterns as channel_urls
from channels_app.sign_in.admin.pages import urlpatterns as sign_in_urls
from notifications_app.api.urls import urlpatterns as notification_urls
from pushsvc.common.http.routes import endpoint
from pushsvc.ops.doctor.page import doctor_page
from pushsvc.ops.health import HealthView, ReadyView
from pushsvc.ops.metrics import MetricsView
from pushsvc.sdk.views import SdkView
from pushsvc.site.demo import DemoCountsView, DemoSendView, DemoView, DemoWorkerView
from pushsvc.site.guides import ExamplesView, GuideView
from pushsvc.site.pages import ErrorsView, HomeView, OpenApiView, ReferenceView
from subscriptions_app.api.urls import urlpatterns as subscription_urls
from subscriptions_app.device_page import DeviceJoinView, DevicePageView, DeviceWorkerView

urlpatterns = [
    *subscription_urls,  # first, because Django tries all routes in turn
    *notification_urls,
    *channel_urls,
    endpoint("", HomeView),
    endpoint("docs", ReferenceView),
    endpoint("docs/errors", ErrorsView),
    endpoint("docs/examples", ExamplesView),
    endpoint("docs/<str:name>", GuideView),
    endpoint("sdk/<str:name>", SdkView),
    endpoint("demo", DemoView),
    endpoint("demo/sw.js", DemoWorkerView),
    endpoint("demo/send", DemoSendView),
    endpoint("demo/notifications/<id:notification_id>", DemoCountsView),
    endpoint("test-device/<id:channel_id>", DevicePageView),
    endpoint("test-device/<id:channel_id>/sw.js", DeviceWorkerView),
    endpoint("test-device/<id:channel_id>/join", DeviceJoinView),
    endpoint("openapi.json", OpenApiView),
    endpoint("healthz", HealthView),
    endpoint("readyz", ReadyView),
    endpoint("metrics", MetricsView),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/", include(sign_in_urls)),  # two of them replace pages of the admin
    # The admin's own page here would look up any row of any model, of any account.
    path("admin/r/<path:url>", admin.site.admin_view(admin.site.catch_all_view)),
    path("admin/doctor/", admin.site.admin_view(doctor_page), name="doctor"),
    path("admin/", admin.site.urls),
]

handler400 = "pushsvc.common.http.handlers.bad_request"
handler403 = "pushsvc.common.http.handlers.permission_denied"
handler404 = "pushsvc.common.http.handlers.page_not_found"
handler500 = "pushsvc.common.http.handlers.server_error"
