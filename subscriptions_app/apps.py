from django.apps import AppConfig


class SubscriptionsConfig(AppConfig):
    name = "subscriptions_app"
    verbose_name = "Audience"
