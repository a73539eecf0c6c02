"""Debian's nginx with deploy/nginx.conf, in which the tests change only addresses and paths."""

import datetime
import os
import shutil
import socket
import ssl
import subprocess
from contextlib import contextmanager

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from bench.ports import own_port
from tests import leftovers, missing
from tests.forked import CHECKOUT
from tests.pipeline.processes import kill
from tests.pipeline.support import until

HOST = "push.example.com"
PROGRAM = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")


class Nginx:
    """A running nginx: its address, and the folder of its logs."""

    def __init__(self, folder, certificate):
        self.folder = folder
        self.port, self.plain_port = own_port(), own_port()
        self.tls = ssl.create_default_context(cafile=certificate)

    def connect(self, address="127.0.0.1", host=HOST):
        """A connection over TLS from this address of the loopback."""
        plain = socket.create_connection(("127.0.0.1", self.port), 60, (address, 0))
        return self.tls.wrap_socket(plain, server_hostname=host)

    def log(self):
        return (self.folder / "access.log").read_text()


@contextmanager
def running_nginx(folder, certificate, upstream, **more):
    """In front of the web process at the port `upstream`; `more`: further texts to replace."""
    if PROGRAM is None:
        missing.skip_without("nginx")
    folder.mkdir()
    nginx = Nginx(folder, certificate)
    (folder / "nginx.conf").write_text(_configuration(nginx, certificate, upstream, more))
    process = subprocess.Popen(
        [
            PROGRAM,
            *("-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"),
            *("-g", "daemon off;" + (" user root;" if os.geteuid() == 0 else "")),
        ],
        start_new_session=True,
    )
    leftovers.end_group_with_us(process.pid)
    try:
        until(lambda: _answers(process, nginx.port), seconds=60)
        yield nginx
    finally:
        kill(process)
        print((folder / "error.log").read_text())  # noqa: T201 (pytest shows it where a test failed)


def _configuration(nginx, certificate, upstream, more):
    text = (CHECKOUT / "deploy" / "nginx.conf").read_text()
    folder = nginx.folder
    temporary = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    changes = {
        "/run/nginx.pid": f"{folder}/nginx.pid",
        "/var/log/nginx/": f"{folder}/",
        "/etc/nginx/pushsvc.crt": str(certificate),
        "/etc/nginx/pushsvc.key": str(certificate),
        "http {": f"http {{ {temporary}",
        "server 127.0.0.1:8000;": f"server 127.0.0.1:{upstream};",
        "        listen [::]:443 ssl default_server;\n": "",
        "        listen [::]:443 ssl;\n": "",
        "        listen [::]:80 default_server;\n": "",
        "listen 443 ssl": f"listen 127.0.0.1:{nginx.port} ssl",
        "listen 80 ": f"listen 127.0.0.1:{nginx.plain_port} ",
        **more,
    }
    for old, new in changes.items():
        assert old in text, f"deploy/nginx.conf has no {old!r}"
        text = text.replace(old, new)
    return text


def _answers(process, port):
    assert process.poll() is None, "nginx ended"
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def make_certificate(path):
    """A PEM file with a self-signed certificate for HOST and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    start = datetime.datetime.fromtimestamp(0, datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=40_000))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(Encoding.PEM)
    path.write_bytes(pem + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path
