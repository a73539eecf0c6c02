"""Credentials as Google and Apple issue them, with newly made keys."""

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def pem(key, encryption=None):
    encryption = encryption or NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


RSA_KEY = pem(rsa.generate_private_key(65537, 2048))
P8 = pem(ec.generate_private_key(ec.SECP256R1()))
GOOGLE = {
    "type": "service_account",
    "project_id": "alices-shop",
    "private_key_id": "0123456789abcdef",
    "private_key": RSA_KEY,
    "client_email": "push@alices-shop.iam.gserviceaccount.com",
    "token_uri": "https://attacker.example/token",
    "universe_domain": "attacker.example",
}
APPLE = {
    "key": P8,
    "key_id": "ABC123DEFG",
    "team_id": "DEF123GHIJ",
    "topic": "com.example.shop",
    "environment": "sandbox",
}
