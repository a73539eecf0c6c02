"""Encryption of stored secrets: Fernet with CREDENTIAL_KEYS. The first key encrypts."""

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class SecretUnreadable(Exception):
    """None of the keys in CREDENTIAL_KEYS decrypts this secret."""


def encrypt(text: str) -> str:
    return _fernet(tuple(settings.CREDENTIAL_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Returns the text. Raises SecretUnreadable if CREDENTIAL_KEYS no longer has its key."""
    try:
        return _fernet(tuple(settings.CREDENTIAL_KEYS)).decrypt(token).decode()
    except InvalidToken as error:
        raise SecretUnreadable("encrypted with a key that CREDENTIAL_KEYS does not hold") from error


def is_readable(token: str) -> bool:
    try:
        decrypt(token)
    except SecretUnreadable:
        return False
    return True


def is_current(token: str) -> bool:
    """Whether the secret was encrypted with the first key."""
    try:
        Fernet(settings.CREDENTIAL_KEYS[0]).decrypt(token)
    except InvalidToken:
        return False
    return True


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
