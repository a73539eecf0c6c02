"""The service's settings with smaller portions and shorter waits, for the fault suite's processes.

A thousand devices are many batches then. A lease is as long as the service's, so that none ends
while a busy machine is slow; tests end the leases of dead workers (`System.end_leases`).
"""

import os

from pushsvc.settings import *  # noqa: F403 (all of them; a few are changed below)

PLAN_WINDOW = 300
BATCH_SIZE = 200
LEASE_SECONDS = int(os.environ.get("FAULTS_LEASE_SECONDS", "120"))
CALL_SECONDS = float(os.environ.get("FAULTS_CALL_SECONDS", "10"))
CELERY_TASK_TIME_LIMIT = int(os.environ.get("FAULTS_TASK_SECONDS", "300"))
SILENT_TRANSACTION_SECONDS = 5
UNKNOWN_HOST_BATCH_SECONDS = 2.0
CALLS_IN_FLIGHT = 40
FLUSH_OUTCOMES = 60
UNWRITTEN_OUTCOMES = 100
INSTALLED_APPS = [*INSTALLED_APPS, "tests.faults.poison.Poison"]  # noqa: F405 (of the service)
