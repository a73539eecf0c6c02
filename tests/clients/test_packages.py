"""What the packages of clients/ contain for somebody who has no checkout."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.clients.generators import CHECKOUT, require_tools, run

CLIENTS = CHECKOUT / "clients"
LICENSE = (CHECKOUT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["browser", "typescript"])
def test_an_npm_package_has_its_licence_and_all_that_its_readme_links_to(name, tmp_path):
    require_tools()
    for folder in (f"clients/{name}", "pushsvc/sdk"):  # copies, because npm writes into its folder
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    run("npm", "pack", "--silent", tmp_path / "clients" / name, cwd=tmp_path)
    (tarball,) = tmp_path.glob("*.tgz")
    files = files_of_tar(tarball)

    assert files["LICENSE"] == LICENSE
    assert dead_links(files) == []


def test_the_wheel_and_the_sdist_have_the_licence_and_all_that_the_readme_links_to(tmp_path):
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--offline", "--out-dir", tmp_path]
    subprocess.run([*build, CLIENTS / "python"], check=True)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    files = files_of_tar(sdist)
    assert files["LICENSE"] == LICENSE
    assert dead_links(files) == []

    with zipfile.ZipFile(wheel) as opened:
        (licence,) = [name for name in opened.namelist() if name.endswith("/licenses/LICENSE")]
        assert opened.read(licence) == LICENSE
        (about,) = [name for name in opened.namelist() if name.endswith("/METADATA")]
        assert dead_links({"README.md": opened.read(about)}) == []


@pytest.mark.parametrize("name", ["android", "ios"])
def test_a_copied_directory_has_its_licence_and_all_that_its_readme_links_to(name):
    """Gradle and Xcode use the directory itself."""
    folder = CLIENTS / name
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert files["LICENSE"] == LICENSE
    assert dead_links(files) == []


def files_of_tar(path):
    """The content of each file, by its name below the only folder."""
    with tarfile.open(path) as opened:
        return {
            str(Path(*PurePosixPath(each.name).parts[1:])): opened.extractfile(each).read()
            for each in opened.getmembers()
            if each.isfile()
        }


def dead_links(files):
    """The links of the README that lead to no file or folder of the package."""
    found = re.findall(r"\]\(([^)#]+)", files["README.md"].decode())
    links = [link for link in found if not link.startswith("https://")]
    return [
        link
        for link in links
        if not any(name == link or name.startswith(f"{link}/") for name in files)
    ]
