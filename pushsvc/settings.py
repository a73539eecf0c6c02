"""All settings. docs/configuration.md lists those that come from the environment.

A malformed value raises nothing here. A system check (channels_app/checks.py) reports `ENV.errors`.
"""

import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import global_settings

from pushsvc.bundles import STATIC_BUNDLES as STATIC_BUNDLES  # read by name
from pushsvc.common import database_url
from pushsvc.common.env import Env, http_address, require_package, sentry_dsn
from pushsvc.common.mail_server import MailServer
from pushsvc.common.process import is_beat, is_worker
from pushsvc.logging_settings import logging_settings
from pushsvc.openapi_settings import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS  # read by name

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = Env()

# --- Django ---------------------------------------------------------------------------------------

DEBUG = False
UNSET_SECRET_KEY = "unset-and-refused-by-the-checks"  # noqa: S105 - marks that it is unset
SECRET_KEY = ENV.text("SECRET_KEY", UNSET_SECRET_KEY)
SECRET_KEY_FALLBACKS = list(ENV.words("SECRET_KEY_FALLBACKS"))  # these verify, but do not sign
CREDENTIAL_KEYS = ENV.words("CREDENTIAL_KEYS")  # Fernet keys that encrypt secrets, newest first
PUBLIC_BASE_URL = ENV.address("PUBLIC_BASE_URL", "https://push.example.com").rstrip("/")
ALLOWED_HOSTS = list(ENV.words("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]")))
CSRF_TRUSTED_ORIGINS = [PUBLIC_BASE_URL] if PUBLIC_BASE_URL else []

_APPS_WITH_ROWS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "channels_app.apps.AuditLogConfig",
    "pushsvc",
    "channels_app",
    "subscriptions_app",
    "notifications_app",
]
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # before the admin, because it replaces templates
    "pushsvc.common.console.apps.ConsoleConfig",  # the admin
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",  # the files of Swagger UI
    "django_celery_beat",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "axes",
    *_APPS_WITH_ROWS,
]
MIDDLEWARE = [
    "pushsvc.web.correlation.CorrelationMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "pushsvc.web.csp.PolicyMiddleware",
    "pushsvc.common.http.static_files.StaticFilesMiddleware",
    "pushsvc.web.measuring.MeasuringMiddleware",  # files are not measured
    "corsheaders.middleware.CorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "channels_app.audit.AuditMiddleware",
    "channels_app.sign_in.middleware.SecondStepMiddleware",
    "channels_app.sign_in.middleware.ReaderMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # last, because it replaces the response of the sign-in
]
ROOT_URLCONF = "pushsvc.urls"
APPEND_SLASH = False  # both spellings have routes, because a redirect would turn a POST into a GET
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {"figures": "pushsvc.common.console.figures"},
            "builtins": ["django.templatetags.i18n"],
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
PASSWORD_HASHERS = ["channels_app.sign_in.hashing.BoundedHasher"]
AUTHENTICATION_BACKENDS = [  # the most expensive one last
    "channels_app.sign_in.backend.AddressLimit",
    "axes.backends.AxesStandaloneBackend",
    "channels_app.sign_in.backend.StaffBackend",
]
PASSWORD_RESET_TIMEOUT = 24 * 3600  # links to set a password (channels_app/sign_in/passwords.py)
LANGUAGE_CODE = "en"  # of all but the console (pushsvc/common/console/languages.py) and mails
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("ar", "العربية")]
LANGUAGE_COOKIE_NAME = "language"
LOCALE_PATHS = [BASE_DIR / "pushsvc" / "locale"]
FORMAT_MODULE_PATH = "pushsvc.locale"
TIME_ZONE = "UTC"
USE_TZ = True
if is_worker() or is_beat():
    # Workers serve no requests, so they load neither the console nor the HTTP interface.
    INSTALLED_APPS = [*_APPS_WITH_ROWS, *(["django_celery_beat"] if is_beat() else [])]
    MIDDLEWARE = []
    TEMPLATES = []
    ROOT_URLCONF = ""
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"  # for buildpacks, which run collectstatic
WHITENOISE_USE_FINDERS = True  # files are served from the packages, without collectstatic
WHITENOISE_AUTOREFRESH = False
STORAGES = global_settings.STORAGES | {
    "staticfiles": {"BACKEND": "pushsvc.common.http.static_files.HashedNames"}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SILENCED_SYSTEM_CHECKS = [
    "security.W008",  # the proxy ends TLS; a redirect here would send HTML to API clients
]

# Behind TLS (PUBLIC_BASE_URL is https), browsers send cookies over https only.
_IS_HTTPS = PUBLIC_BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _IS_HTTPS
SESSION_COOKIE_NAME = "__Host-sessionid" if _IS_HTTPS else "sessionid"
CSRF_COOKIE_NAME = "__Host-csrftoken" if _IS_HTTPS else "csrftoken"
CSRF_COOKIE_HTTPONLY = True  # the forms of pages contain the token
SESSION_ENGINE = "channels_app.sign_in.session_store"
SESSION_COOKIE_AGE = 12 * 3600
SECURE_HSTS_SECONDS = 31_536_000 if _IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _IS_HTTPS
X_FRAME_OPTIONS = "DENY"
TRUSTED_PROXIES = ENV.whole("TRUSTED_PROXIES", 0, most=10)
# Only a trusted proxy may say that a request came over https.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None

# --- Sign-in --------------------------------------------------------------------------------------

SIGN_INS_PER_MINUTE = 10  # from an address, successful or not
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True  # the audit log has the sign-ins
AXES_ENABLE_ADMIN = False  # channels_app/sign_in/admin/lockouts.py
AXES_CLIENT_IP_CALLABLE = "pushsvc.common.http.client_address.counted_ip"
AXES_LOCKOUT_CALLABLE = "channels_app.sign_in.middleware.locked_out"
# axes stores the other fields of a form whose password was wrong. These must not be stored.
AXES_SENSITIVE_PARAMETERS = [
    "login",
    "ip_address",
    "csrfmiddlewaretoken",
    "code",
    "credential",
    "oldpassword",
    "password1",
    "password2",
]
AXES_VERBOSE = False
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "admin:index"  # also if `next` names a page of another site

# django-allauth (channels_app/sign_in/adapters.py and forms.py)
ACCOUNT_ADAPTER = "channels_app.sign_in.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True  # for SESSION_COOKIE_AGE
ACCOUNT_LOGIN_TIMEOUT = 300  # for the second step after a sign-in by the provider
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_AUTHENTICATED_LOGIN_REDIRECTS = False
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "channels_app.sign_in.passwords.SetPasswordTokens"  # noqa: S105
ACCOUNT_FORMS = {
    "login": "channels_app.sign_in.forms.SignInForm",
    "reauthenticate": "channels_app.sign_in.forms.OwnProofForm",
    "change_password": "channels_app.sign_in.forms.OwnPasswordForm",
    "reset_password": "channels_app.sign_in.forms.AddressForm",
    "reset_password_from_key": "channels_app.sign_in.forms.ChosenPasswordForm",
}
# The backends limit attempts to sign in, with responses that say when to try again. allauth limits
# only the wrong codes of a user, from all addresses together.
ACCOUNT_RATE_LIMITS = {
    "change_password": None,
    "reset_password": None,
    "reauthenticate": None,
    "reset_password_from_key": None,
    "login": None,
    "login_failed": "3/m/key,10/h/key,30/d/key",
}
MFA_ADAPTER = "channels_app.sign_in.adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses are not verified here
MFA_TOTP_ISSUER = urlsplit(PUBLIC_BASE_URL).hostname or "pushsvc"
MFA_TOTP_TOLERANCE = 1  # a code of 30 seconds before or after
MFA_RECOVERY_CODE_DIGITS = 10
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not _IS_HTTPS  # then browsers allow passkeys on localhost only
MFA_RATE_LIMITS = False
MFA_FORMS = {
    "authenticate": "channels_app.sign_in.forms.CodeForm",
    "reauthenticate": "channels_app.sign_in.forms.OwnCodeForm",
    "activate_totp": "channels_app.sign_in.forms.AppForm",
    "add_webauthn": "channels_app.sign_in.forms.PasskeyForm",
    "login_webauthn": "channels_app.sign_in.forms.PasskeySignInForm",
    "reauthenticate_webauthn": "channels_app.sign_in.forms.OwnPasskeyForm",
}
SOCIALACCOUNT_ADAPTER = "channels_app.sign_in.provider_links.SocialAdapter"
# allauth keeps here which codes were used and how many were wrong, for all processes.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "channels_app_cacheentry",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

# A provider of OpenID Connect; none unless OIDC_ISSUER is set
OIDC_ISSUER = ENV.address("OIDC_ISSUER", "https://accounts.example.com")
OIDC_CLIENT_ID = ENV.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = ENV.text("OIDC_CLIENT_SECRET")
OIDC_LABEL = ENV.text("OIDC_LABEL", "OpenID Connect")
OIDC_TRUST_SECOND_STEP = ENV.choice("OIDC_TRUST_SECOND_STEP", "off", ("on", "off")) == "on"
OIDC_SECONDS = 10.0  # for the body of the provider's response, and for each read of its headers

# --- Mail -----------------------------------------------------------------------------------------

MAIL_SERVER = ENV.parsed(
    "EMAIL_URL", None, MailServer.parse, "smtp://user:password@host:587 or smtps://…"
)
EMAIL_FROM = ENV.text("EMAIL_FROM")
MAIL_SECONDS = 10.0  # for each response of the mail server
RESET_REQUESTS_PER_HOUR = 20  # from an address
RESET_MAILS_PER_HOUR = 3  # to an e-mail address, whether or not a user has it
INVITATION_MAILS_PER_HOUR = 60  # of an account

# --- HTTP interface -------------------------------------------------------------------------------

DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = 6 * 1024 * 1024  # more than pushsvc/web/request_body.py accepts
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_PARSER_CLASSES": ["pushsvc.common.http.negotiation.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "pushsvc.common.http.negotiation.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "pushsvc.common.http.openapi.Schema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "pushsvc.common.http.drf.problem_handler",
    "UNAUTHENTICATED_USER": None,
    "COMPACT_JSON": True,
    "UNICODE_JSON": True,
}
CORS_URLS_REGEX = (
    r"^/(subscribe|unsubscribe|preferences|inbox|prompt|prompt-events|web-push-key|events)/?$"
)
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ["GET", "POST", "OPTIONS"]
CORS_ALLOW_HEADERS = [
    "content-type",
    "x-channel-id",
    # Tracing and libraries of pages add these to every call. Nothing reads them here.
    "baggage",
    "sentry-trace",
    "traceparent",
    "tracestate",
    "x-requested-with",
]
CORS_EXPOSE_HEADERS = ["ratelimit", "ratelimit-policy", "retry-after", "x-request-id"]
CORS_PREFLIGHT_MAX_AGE = 86_400

METRICS_TOKEN = ENV.text("METRICS_TOKEN")
DEMO_RECORD = ENV.text("DEMO_RECORD")

ROWS_KEPT_SECONDS = 1.0  # an API key's row and a channel's, in a web process

# For each account, unless a superuser does it
CHANNELS_PER_ACCOUNT = 100
NEW_USERS_PER_HOUR = 100
# For each channel
SENDS_PER_SECOND = 100
LARGE_SEND_KILOBYTES_PER_HOUR = 512 * 1024  # of sends that store more than 8 KiB
PENDING_PER_CHANNEL = ENV.whole("PENDING_PER_CHANNEL", 10_000, least=1, most=1_000_000)
READS_PER_MINUTE = 3_000
MANAGE_PER_MINUTE = 600
# For each address
REFUSED_KEYS_PER_MINUTE = 60
REFUSED_TOKENS_PER_MINUTE = 60  # identity tokens
SUBSCRIBES_PER_MINUTE = 600
UNKNOWN_CHANNELS_PER_MINUTE = 60  # of all requests of devices
SUBSCRIPTIONS_PER_CHANNEL = ENV.whole("SUBSCRIPTIONS_PER_CHANNEL", 5_000_000, least=1, most=10**9)
WEB_PUSH_KEYS_PER_MINUTE = 6_000
FORGED_EVENTS_PER_MINUTE = 600
INVITATIONS_PER_MINUTE = 60  # of test devices, valid or not
READY_PER_MINUTE = 6_000
IMAGES_PER_MINUTE = 6_000  # all phones of a network may have one address
# For each user
IMAGE_UPLOADS_PER_MINUTE = 20

# --- PostgreSQL -----------------------------------------------------------------------------------

DATABASE_URL = ENV.parsed(
    "DATABASE_URL",
    "postgresql:///pushsvc",
    database_url.checked,
    "postgresql://user:password@host/name",
)
DATABASES = {"default": database_url.parsed(DATABASE_URL, is_kept=is_worker())}

# --- Redis and Celery -----------------------------------------------------------------------------

REDIS_TLS_VERIFY = ENV.choice("REDIS_TLS_VERIFY", "on", ("on", "off"))


def _redis(url: str) -> str:
    """Adds whether the server's certificate is verified. By Celery's default it is not."""
    if not url.startswith("rediss://") or "ssl_cert_reqs=" in url:
        return url
    wanted = "required" if REDIS_TLS_VERIFY == "on" else "none"
    return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs={wanted}"


_EXPECTED = "redis://:password@host:6379/0, with # / ? in the password as %23 %2F %3F"
REDIS_URL = _redis(ENV.address("REDIS_URL", _EXPECTED, "redis://127.0.0.1:6379/0"))
CELERY_BROKER_URL = _redis(ENV.address("CELERY_BROKER_URL", _EXPECTED)) or (
    REDIS_URL.replace("unix://", "redis+socket://", 1)
)
# Seconds; longer than a batch may take. A process that takes longer hangs: its worker kills it and
# starts another, and its batches continue like those of a killed worker.
CELERY_TASK_TIME_LIMIT = 300
PORT = ENV.whole("PORT", 8000, least=1, most=65_535)  # used by the Procfile
WEB_CONCURRENCY = ENV.whole("WEB_CONCURRENCY", 1, least=1, most=256)
WEB_WAIT_SECONDS = ENV.whole("WEB_WAIT_SECONDS", 5, least=1, most=600)  # for a thread
ESTIMATE_SECONDS = ENV.whole("ESTIMATE_SECONDS", 1, least=1, most=600)  # for a statement
WEB_CONNECTIONS = ENV.whole("WEB_CONNECTIONS", 4096, least=64, most=65_536)
WORKER_CONCURRENCY = ENV.whole("WORKER_CONCURRENCY", 2, least=1, most=256)

# --- Push services --------------------------------------------------------------------------------

DEFAULT_VAPID_SUBJECT = "mailto:push@example.com"
VAPID_SUBJECT = ENV.text("VAPID_SUBJECT", DEFAULT_VAPID_SUBJECT)
WEBPUSH_TRUSTED_ORIGINS = frozenset(ENV.words("WEBPUSH_TRUSTED_ORIGINS"))
WEBPUSH_ALLOWED_HOSTS = ENV.words("WEBPUSH_ALLOWED_HOSTS")
FCM_API_BASE = ENV.text("FCM_API_BASE", "https://fcm.googleapis.com").rstrip("/")
GOOGLE_TOKEN_URI = ENV.text("GOOGLE_TOKEN_URI", "https://oauth2.googleapis.com/token")
APNS_SERVER = ENV.text("APNS_SERVER")  # host:port instead of Apple's, for both environments
PROVIDER_CA_FILE = ENV.text("PROVIDER_CA_FILE")
WEBHOOK_TRUSTED_ORIGINS = frozenset(ENV.words("WEBHOOK_TRUSTED_ORIGINS"))
NEWSFEED_TRUSTED_ORIGINS = frozenset(ENV.words("NEWSFEED_TRUSTED_ORIGINS"))

# --- Images ---------------------------------------------------------------------------------------

# Images are in the database, unless there is a bucket.
IMAGES_BUCKET_URL = ENV.address("IMAGES_BUCKET_URL", "https://s3.example.com/bucket").rstrip("/")
if IMAGES_BUCKET_URL:
    require_package("storages", of="images", for_setting="IMAGES_BUCKET_URL")
IMAGES_BUCKET_REGION = ENV.text("IMAGES_BUCKET_REGION", "us-east-1")
IMAGES_BUCKET_KEY_ID = ENV.text("IMAGES_BUCKET_KEY_ID")
IMAGES_BUCKET_SECRET_KEY = ENV.text("IMAGES_BUCKET_SECRET_KEY")

# --- Pipeline -------------------------------------------------------------------------------------

PLAN_WINDOW = 5_000  # subscription ids that one planning transaction reads
PLAN_SLICE_SECONDS = 0.5
CLAIM_PLANS = 100  # new plans that a planner claims together
BATCH_SIZE = 1_000
CLAIM_BATCHES = 100  # small batches that a worker claims together, up to the size of one batch
LEASE_SECONDS = 120
SILENT_TRANSACTION_SECONDS = 20  # then PostgreSQL ends it: its process is paused or gone
FLUSH_OUTCOMES = 300
FLUSH_SECONDS = 0.25
UNWRITTEN_OUTCOMES = 500  # beyond this, a worker starts no further call
CALLS_IN_FLIGHT = 100  # of one pass of a worker process
CALL_SECONDS = 10.0
# For each Google project (https://firebase.google.com/docs/cloud-messaging/throttling-and-quotas)
FCM_CALLS_PER_MINUTE = 600_000
BATCH_SECONDS = 60.0  # of one pass; then unfinished batches are handed back
UNKNOWN_HOST_CALL_SECONDS = 5.0
UNKNOWN_HOST_BATCH_SECONDS = 5.0  # the same
HAND_OVER_ATTEMPTS = 12
HAND_OVER_SECONDS = 3600
PARKED_SECONDS = 3600
TTL_ZERO_SECONDS = 3600
DELIVERY_RETENTION_DAYS = 30
SUBSCRIPTION_RETENTION_DAYS = 90

# --- Traces and errors ----------------------------------------------------------------------------

# The names are those of OpenTelemetry and Sentry. The endpoint is without /v1/traces.
OTEL_EXPORTER_OTLP_ENDPOINT = ENV.parsed(
    "OTEL_EXPORTER_OTLP_ENDPOINT", "", http_address, "http://collector:4318"
).rstrip("/")
OTEL_TRACES_SAMPLER_ARG = ENV.share("OTEL_TRACES_SAMPLER_ARG", 1.0)
SENTRY_DSN = ENV.parsed("SENTRY_DSN", "", sentry_dsn, "https://key@host/number")
if OTEL_EXPORTER_OTLP_ENDPOINT:
    require_package("opentelemetry.sdk", of="telemetry", for_setting="OTEL_EXPORTER_OTLP_ENDPOINT")
if SENTRY_DSN:
    require_package("sentry_sdk", of="telemetry", for_setting="SENTRY_DSN")

# --- Logging --------------------------------------------------------------------------------------

# Programs read the log, unless it goes to a terminal.
LOG_FORMAT = ENV.choice("LOG_FORMAT", "text" if sys.stderr.isatty() else "json", ("text", "json"))
LOGGING = logging_settings(log_format=LOG_FORMAT, sentry_dsn=SENTRY_DSN)
