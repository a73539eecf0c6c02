"""Push services on loopback that check what the real ones check, and fail on demand.

For our tests, `make run` and teams that build on pushsvc. Imports nothing of Django or the apps.
`running_sandbox()` serves in a thread; `manage.py sandbox` serves on its own.
"""

from pushsvc.sandbox.behaviours import Mode
from pushsvc.sandbox.devices import Device, MismatchAnswer, Receipt
from pushsvc.sandbox.web import WebSandbox, running_sandbox

__all__ = ["Device", "MismatchAnswer", "Mode", "Receipt", "WebSandbox", "running_sandbox"]
