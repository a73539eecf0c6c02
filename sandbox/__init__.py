"""Push services on loopback that check requests as the real ones do, and fail on demand.

The tests, `make run` and teams that build on pushsvc use them. This package imports neither
Django nor the apps.
`running_sandbox()`, `running_fcm_sandbox()` and `running_apns_sandbox()` serve in a thread;
`python -m sandbox` serves in a separate process.
"""

from sandbox.apns.behaviours import ApnsMode, KeyMode
from sandbox.apns.devices import ApnsDevice, ApnsKey, ApnsReceipt
from sandbox.apns.server import ApnsSandbox, running_apns_sandbox
from sandbox.fcm.behaviours import FcmMode
from sandbox.fcm.devices import FcmDevice, FcmReceipt
from sandbox.fcm.server import FcmSandbox, running_fcm_sandbox
from sandbox.receipts import Receipt
from sandbox.webpush.behaviours import Mode
from sandbox.webpush.browsers import BrowserDevice
from sandbox.webpush.devices import Device, MismatchAnswer
from sandbox.webpush.server import WebSandbox, running_sandbox

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
