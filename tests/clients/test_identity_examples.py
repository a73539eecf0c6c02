"""The programs and the lines of docs/identity.md make identity tokens that the service accepts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from subscriptions_app.people.identity_tokens import VerifyingKey, token_check
from tests import missing
from tests.clients.generators import go_cache
from tests.clients.test_examples import CHECKOUT, EXAMPLES, found

CHANNEL = UUID("00000000-0000-0000-0000-000000000000")
USER = 'user-42 ü/"'  # what JSON and base64 could spoil
SECRET = "psi_" + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
RUN = {
    "identity.py": ("python3",),
    "identity.mjs": ("node",),
    "identity.php": ("php",),
    "identity.go": ("go", "run"),
    "identity.rb": ("ruby",),
}


def judged(token, algorithm, material):
    key = VerifyingKey(uuid4(), algorithm, material)
    return token_check(token, keys=[key], channel_id=CHANNEL, external_id=USER)


def printed(command, folder, **environment):
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def require(program):
    if found(program) is None:
        missing.skip_without(program)
    return found(program)


@pytest.mark.parametrize("name", RUN)
def test_an_example_prints_a_token_that_the_service_accepts(name, tmp_path):
    program, *options = RUN[name]
    own = {"GOCACHE": go_cache()} if program == "go" else {}

    token = printed(
        [require(program), *options, str(EXAMPLES / name), USER],
        tmp_path,
        PUSHSVC_CHANNEL=str(CHANNEL),
        PUSHSVC_IDENTITY_KEY=SECRET,
        **own,
    )

    assert judged(token, "HS256", SECRET).broken is None
    assert judged(token, "HS256", SECRET.upper()).broken == "signature"


@pytest.fixture
def pair():
    """The PEM of a private key, and of its public key."""
    private = ec.generate_private_key(ec.SECP256R1())
    return (
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
    )


def lines_of_the_guide(language):
    text = (CHECKOUT / "docs" / "identity.md").read_text(encoding="utf-8")
    [block] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return block


def test_the_guides_python_makes_a_token_for_es256(tmp_path, pair):
    private, public = pair
    program = f"{lines_of_the_guide('python')}\nimport sys\nprint(identity_token(*sys.argv[1:]))\n"
    token = printed([sys.executable, "-c", program, USER, str(CHANNEL), private], tmp_path)
    assert judged(token, "ES256", public).broken is None


def test_the_guides_node_makes_a_token_for_es256(tmp_path, pair):
    private, public = pair
    script = tmp_path / "token.mjs"
    own = "console.log(identityToken(...process.argv.slice(2)));\n"
    script.write_text(lines_of_the_guide("js") + own)
    token = printed([require("node"), str(script), USER, str(CHANNEL), private], tmp_path)
    assert judged(token, "ES256", public).broken is None


def test_the_guides_openssl_makes_a_pair_that_works(tmp_path):
    if shutil.which("openssl") is None:
        missing.skip_without("openssl")
    text = (CHECKOUT / "docs" / "identity.md").read_text(encoding="utf-8")
    commands = "\n".join(re.findall(r"^  (openssl .*)$", text, re.MULTILINE))

    printed(["sh", "-ec", commands], tmp_path)

    private = serialization.load_pem_private_key((tmp_path / "identity.pem").read_bytes(), None)
    public = serialization.load_pem_public_key((tmp_path / "identity-public.pem").read_bytes())
    assert private.public_key() == public
    assert isinstance(public.curve, ec.SECP256R1)


def test_the_list_of_examples_is_complete():
    assert {path.name for path in Path(EXAMPLES).glob("identity.*")} == set(RUN)
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"{name} user-42`" in listed for name in RUN)
