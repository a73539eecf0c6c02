"""The configuration of Celery, apart from what other settings decide. `celery.py` names it."""

from django.conf import settings
from kombu import Exchange, Queue

broker_url = settings.CELERY_BROKER_URL
task_time_limit = settings.CELERY_TASK_TIME_LIMIT
broker_transport_options = {
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
}
broker_connection_retry_on_startup = True
broker_connection_max_retries = None  # tries every two seconds, for as long as it takes
broker_channel_error_retry = True  # also if Redis responds that it accepts no writes
# How many tasks share a database connection. Practically unlimited, because a new session reads the
# catalog again, which takes longer than planning a small send.
CELERY_DB_REUSE_MAX = 2**31
task_ignore_result = True
task_acks_late = False  # a message is only a wakeup, so it is done when it is received
task_queues = [  # each with its exchange, because a shared one would copy messages
    Queue(name, Exchange(name), routing_key=name)
    for name in ("tick", "plan", "web", "android", "ios", "hooks")
]
task_create_missing_queues = False
task_default_queue = "plan"
task_serializer = "json"
accept_content = ["json"]
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
worker_send_task_events = False
enable_utc = True
timezone = "UTC"
beat_scheduler = "pushsvc.beat:Scheduler"
beat_schedule = {
    "tick": {
        "task": "notifications_app.tasks.tick",
        "schedule": 1.0,
        "options": {"queue": "tick", "expires": 120.0},  # by the clock of the process that takes it
    },
    "housekeeping": {
        "task": "notifications_app.tasks.housekeeping",
        "schedule": 60.0,
        "options": {"queue": "tick", "expires": 180.0},
    },
}
