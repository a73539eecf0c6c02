"""A sender as client teams write it: Google's own library signs, plain HTTP does the rest."""

import json
import time
from copy import copy
from urllib.parse import urlencode

from google.auth import crypt, jwt

from tests.sandbox.webpush.sender import post

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PROJECT = "demo-app"


class FcmSender:
    """One service account; its access token is fetched once."""

    def __init__(self, sandbox, project=PROJECT):
        self.sandbox = sandbox
        self.project = project
        self.key_file = sandbox.service_account(project)
        self.bearer = self.token().json["access_token"]

    def moved_to(self, sandbox):
        """The same account, at another run of the sandbox."""
        moved = copy(self)
        moved.sandbox = sandbox
        moved.bearer = moved.token().json["access_token"]
        return moved

    def assertion(self, key_file=None, header=None, **claims):
        """A valid assertion; a claim of None leaves it out."""
        key_file = key_file or self.key_file
        now = int(time.time())
        usual = {
            "iss": key_file["client_email"],
            "aud": "https://oauth2.googleapis.com/token",
            "scope": SCOPE,
            "iat": now,
            "exp": now + 3_600,
        }
        changed = {name: value for name, value in (usual | claims).items() if value is not None}
        signer = crypt.RSASigner.from_service_account_info(key_file)
        return jwt.encode(signer, changed, header=header).decode()

    def token(self, assertion=None, **form):
        good = {"grant_type": GRANT_TYPE, "assertion": assertion or self.assertion()}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Said(post(self.sandbox.token_uri, headers, urlencode(good | form).encode()))

    def send(self, device, *, bearer=None, project=None, timeout=10, **fields):
        """A message to the device; a field of None leaves it out."""
        field = "fid" if getattr(device, "by_fid", False) else "token"  # over HTTP, by token
        message = {field: getattr(device, field), "notification": {"body": "It rains."}} | fields
        kept = {name: value for name, value in message.items() if value is not None}
        return self.post({"message": kept}, bearer=bearer, project=project, timeout=timeout)

    def post(self, body, *, bearer=None, project=None, timeout=10):
        url = f"{self.sandbox.origin}/v1/projects/{project or self.project}/messages:send"
        headers = {
            "Authorization": f"Bearer {bearer or self.bearer}",
            "Content-Type": "application/json",
        }
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Said(post(url, headers, raw, timeout))


class Said:
    """An answer, and Google's error object in it."""

    def __init__(self, answered):
        self.status = answered.status
        self.headers = answered.headers
        self.body = answered.body
        self.json = json.loads(answered.body or b"null")

    @property
    def error(self):
        return self.json["error"]

    @property
    def fcm_code(self):
        """The code of the FcmError; None without one."""
        name = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
        codes = [each["errorCode"] for each in self.error["details"] if each["@type"] == name]
        return codes[0] if codes else None

    @property
    def fields(self):
        """The fields that a BadRequest names."""
        name = "type.googleapis.com/google.rpc.BadRequest"
        lists = [each["fieldViolations"] for each in self.error["details"] if each["@type"] == name]
        return [violation["field"] for violations in lists for violation in violations]

    @property
    def reason(self):
        """The reason of the ErrorInfo; None without one."""
        name = "type.googleapis.com/google.rpc.ErrorInfo"
        reasons = [each["reason"] for each in self.error["details"] if each["@type"] == name]
        return reasons[0] if reasons else None
