"""Prints an identity_token: the proof of a backend that a device belongs to one of its users."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time

CHANNEL = os.environ["PUSHSVC_CHANNEL"]
IDENTITY_KEY = os.environ["PUSHSVC_IDENTITY_KEY"]  # psi_…, of an HS256 key


def identity_token(user_id):
    """For the user who is signed in, and for nobody else. Valid for an hour."""
    claims = {"sub": user_id, "aud": CHANNEL, "exp": int(time.time()) + 3600}
    signed = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(claims)}"
    signature = hmac.digest(IDENTITY_KEY.encode(), signed.encode(), hashlib.sha256)
    return f"{signed}.{base64url(signature)}"


def encoded(value):
    return base64url(json.dumps(value).encode())


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


print(identity_token(sys.argv[1]))
