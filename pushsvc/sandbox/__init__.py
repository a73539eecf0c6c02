"""Push services on loopback that check requests as the real ones do, and fail on demand.

The tests, `make run` and teams that build on pushsvc use them. This package imports neither
Django nor the apps.
`running_sandbox()`, `running_fcm_sandbox()` and `running_apns_sandbox()` serve in a thread;
`manage.py sandbox` serves in a separate process.
"""

from pushsvc.sandbox.apns.behaviours import ApnsMode, KeyMode
from pushsvc.sandbox.apns.devices import ApnsDevice, ApnsKey, ApnsReceipt
from pushsvc.sandbox.apns.server import ApnsSandbox, running_apns_sandbox
from pushsvc.sandbox.fcm.behaviours import FcmMode
from pushsvc.sandbox.fcm.devices import FcmDevice, FcmReceipt
from pushsvc.sandbox.fcm.server import FcmSandbox, running_fcm_sandbox
from pushsvc.sandbox.receipts import Receipt
from pushsvc.sandbox.webpush.behaviours import Mode
from pushsvc.sandbox.webpush.browsers import BrowserDevice
from pushsvc.sandbox.webpush.devices import Device, MismatchAnswer
from pushsvc.sandbox.webpush.server import WebSandbox, running_sandbox

__all__ = [
    "ApnsDevice",
    "ApnsKey",
    "ApnsMode",
    "ApnsReceipt",
    "ApnsSandbox",
    "BrowserDevice",
    "Device",
    "FcmDevice",
    "FcmMode",
    "FcmReceipt",
    "FcmSandbox",
    "KeyMode",
    "MismatchAnswer",
    "Mode",
    "Receipt",
    "WebSandbox",
    "running_apns_sandbox",
    "running_fcm_sandbox",
    "running_sandbox",
]
