"""A mail server on the loopback that keeps what it gets."""

import asyncio
import ssl
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from threading import Event, Thread

from aiosmtpd.smtp import SMTP, AuthResult

from pushsvc.common.mail_server import MailServer
from sandbox.certificate import server_chain

USER, PASSWORD = "push", "mail-password"
FROM = "pushsvc <push@example.com>"
PUBLIC = "https://push.example.com"


class Server:
    """`refusal`: the answer to the next recipients, if not empty. `mails`: what arrived."""

    port: int
    ca_file: Path

    def __init__(self):
        self.mails, self.logins, self.refusal = [], [], ""
        self.arrived = Event()

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's
        mail = message_from_bytes(envelope.content, policy=policy.default)
        mail["X-Recipients"] = ",".join(envelope.rcpt_tos)
        mail["X-Is-Encrypted"] = str(server.transport.get_extra_info("ssl_object") is not None)
        self.mails.append(mail)
        self.arrived.set()
        return "250 OK"

    def authenticator(self, server, session, envelope, mechanism, data):
        self.logins.append(data.login.decode())
        is_right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=is_right, handled=is_right)


@contextmanager
def running_mail_server(folder, *, tls="starttls"):
    """`tls`: starttls, tls or off. Its `ca_file` is the authority to trust."""
    kept = Server()
    kept.ca_file = folder / "mail-authority.pem"
    context = _context(folder, kept.ca_file)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    start = loop.create_server(
        lambda: SMTP(kept, loop=loop, **_options(kept, tls, context)),
        "localhost",
        ssl=context if tls == "tls" else None,
    )
    server = asyncio.run_coroutine_threadsafe(start, loop).result(60)
    kept.port = server.sockets[0].getsockname()[1]
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def _context(folder, ca_file):
    chain, authority = server_chain("localhost")
    (folder / "mail-chain.pem").write_bytes(chain)
    ca_file.write_text(authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "mail-chain.pem")
    return context


def _options(kept, tls, context):
    """aiosmtpd takes logins only after STARTTLS."""
    if tls != "starttls":
        return {}
    login = {"authenticator": kept.authenticator, "auth_required": True}
    return login | {"tls_context": context, "require_starttls": True}


def url_of(server, scheme="smtp", password=PASSWORD, options=""):
    login = f"{USER}:{password}@" if password else ""
    return f"{scheme}://{login}localhost:{server.port}{options}"


def use(settings, server, **options):
    """Lets the settings name the server."""
    settings.MAIL_SERVER = MailServer.parse(url_of(server, **options))
    settings.EMAIL_FROM, settings.PUBLIC_BASE_URL = FROM, PUBLIC
    settings.PROVIDER_CA_FILE = str(server.ca_file)
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "push.example.com", "evil.example"]


def link_in(mail):
    (link,) = [line for line in mail.get_content().splitlines() if line.startswith("http")]
    return link
