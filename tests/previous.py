"""`make test-previous`: whether the previous version works on the schema of this one.

    make test-previous
    make test-previous PREVIOUS=v1.0.0 ARGS="-k planning"

Migrations run while processes of the previous version still work. So this takes that version out of
git, applies the migrations of this version, and runs the previous version's tests of the pipeline
on the new schema. Then processes of both versions work beside one another
(`test_previous_version.py`). PREVIOUS is a tag or a commit; the default is the last tag before this
commit. Both versions use the installed packages, which are those of this one.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import psycopg

from local import embedded
from tests import leftovers
from tests.forked import CHECKOUT
from tests.plugin import ENVIRONMENT

_RUN = "next"
_DATABASE = f"template_of_run_{_RUN}"  # which tests/template.py copies, as it finds it there
_NO_REDIS = "redis://127.0.0.1:1/0"  # migrations need none, and would start one
_MIGRATE = (sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0")
# Not the tag of this version itself.
_TAGS = ("tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-creatordate")
_PYTEST = (sys.executable, "-m", "pytest", "-o", "faulthandler_timeout=0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="make test-previous")
    parser.add_argument("--previous", metavar="COMMIT")
    arguments, of_pytest = parser.parse_known_args()
    commit = arguments.previous or _last_tag()
    if not commit:
        sys.exit(
            "make test-previous: No earlier version has been released: there is no tag before this"
            " commit. PREVIOUS=... names a commit, 1.0.0 at the earliest."
        )
    _say(f"the previous version: {_said_by_git('log', '-1', '--format=%h %s', commit)}")
    with _taken_out(commit) as folder:
        has_failed = _pipeline(folder, of_pytest)
        has_failed |= _run(
            [*_PYTEST, "-v", "tests/faults/test_previous_version.py"], FAULTS_PREVIOUS=str(folder)
        )
    sys.exit(has_failed)


def _pipeline(folder, of_pytest):
    with _postgres() as (url, url_of_database):
        if _run(_MIGRATE, DATABASE_URL=url_of_database, REDIS_URL=_NO_REDIS, **ENVIRONMENT):
            return True
        words = [*_PYTEST, "-n", "logical", "--testrunuid", _RUN, "tests/pipeline", *of_pytest]
        return _run(words, folder, DATABASE_URL=url)


@contextmanager
def _postgres():
    """The URLs of a server and of a database in it, which is empty."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-previous-") as home:
        leftovers.end_home_with_us(Path(home))
        servers = embedded.start(Path(home), redis=False, durable=False)
        url = servers.environment["DATABASE_URL"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {_DATABASE}")
        yield url, urlsplit(url)._replace(path=f"/{_DATABASE}").geturl()
        servers.stop()


@contextmanager
def _taken_out(commit):
    """The folder with the files of the commit."""
    archive = _git("archive", commit)
    with tempfile.TemporaryDirectory(prefix="pushsvc-previous-") as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def _last_tag():
    return _said_by_git(*_TAGS).partition("\n")[0]


def _said_by_git(*words):
    return _git(*words).decode().strip()


def _git(*words):
    git = shutil.which("git") or "git"
    return subprocess.run([git, *words], cwd=CHECKOUT, check=True, stdout=PIPE).stdout


def _run(words, folder=CHECKOUT, **changed):
    """Whether it failed."""
    return subprocess.run(words, cwd=folder, env=os.environ | changed, check=False).returncode != 0


def _say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
