"""git and git-lfs against the registry: a clone has every file's bytes, of public and of private repositories."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pulling import content
from registry import KERNELS, Registry

FILES = {
    "README.md": b"# large files\n",
    "small.bin": b"\0small",
    "large.bin": content(3_000_000, "large"),
    "build/torch-cpu/a b [1]*.so": content(1_500_000, "odd"),
    "caf\u00e9/large.bin": content(1_100_000, "accent"),
    "empty.txt": b"",
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(KERNELS, tmp_path_factory.mktemp("git") / "root") as registry:
        yield registry


class Git:
    """git of a user who has git-lfs set up, and no settings else."""

    def __init__(self, home: Path) -> None:
        self.home, self.clone = home, home / "clone"
        self.home.mkdir(exist_ok=True)
        self("lfs", "install", "--skip-repo")

    def __call__(self, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_TERMINAL_PROMPT": "0", **environment}
        done = subprocess.run(["git", *arguments], env=env, capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, done.stderr
        return done

    def files(self) -> dict[str, bytes]:
        names = (p.relative_to(self.clone) for p in self.clone.rglob("*") if p.is_file())
        kept = (name for name in names if name.parts[0] != ".git" and name.name != ".gitattributes")
        return {str(name): (self.clone / name).read_bytes() for name in kept}

    def status(self) -> str:
        """What git finds altered when it looks at every byte again."""
        for path in self.clone.rglob("*"):
            if path.is_file() and ".git" not in path.relative_to(self.clone).parts:
                path.touch()
        return self("-C", str(self.clone), "status", "--porcelain").stdout


def publish(registry: Registry, name: str, **settings: object) -> str:
    repository = registry.create(name, **settings)
    assert registry.commit(repository, FILES)[0] == 200
    return repository


def test_a_clone_has_every_byte(registry: Registry, tmp_path: Path) -> None:
    repository = publish(registry, "public")
    git = Git(tmp_path / "home")
    git("clone", f"{registry.endpoint}/kernels/{repository}", str(git.clone))
    assert git.files() == FILES
    assert git.status() == ""


def test_a_clone_without_smudging_is_filled_by_lfs_pull(registry: Registry, tmp_path: Path) -> None:
    repository = publish(registry, "later")
    git = Git(tmp_path / "home")
    url = f"{registry.endpoint}/kernels/{repository}.git"
    git("clone", url, str(git.clone), GIT_LFS_SKIP_SMUDGE="1")
    assert (git.clone / "large.bin").read_text().startswith("version https://git-lfs.github.com/spec/v1\n")
    git("-C", str(git.clone), "lfs", "pull")
    assert git.files() == FILES
    assert git.status() == ""
    git("-C", str(git.clone), "lfs", "fsck")


def test_an_update_brings_what_changed(registry: Registry, tmp_path: Path) -> None:
    repository = publish(registry, "changing")
    git = Git(tmp_path / "home")
    git("clone", f"{registry.endpoint}/kernels/{repository}", str(git.clone))
    changed = {"large.bin": b"now small", "small.bin": content(2_000_000, "now large")}
    assert registry.commit(repository, changed)[0] == 200
    git("-C", str(git.clone), "pull", "--ff-only")
    assert git.files() == {**FILES, **changed}
    assert git.status() == ""


def test_a_private_repository_needs_a_token(registry: Registry, tmp_path: Path) -> None:
    repository = publish(registry, "private", private=True)
    path = f"/kernels/{repository}"
    stranger = Git(tmp_path / "stranger")
    for owner in ("", f"bob:{registry.reader}@", "alice:hf_wrong@"):
        url = registry.endpoint.replace("://", f"://{owner}") + path
        refused = stranger("clone", url, str(stranger.clone), check=False)
        assert refused.returncode != 0
        assert not stranger.clone.exists()
    # Asked for Basic, a browser would show a window of its own.
    assert registry.call("GET", "/api/" + path.strip("/"), Authorization="")[1]["WWW-Authenticate"] == "Bearer"
    by_url = Git(tmp_path / "by-url")
    by_url("clone", registry.endpoint.replace("://", f"://alice:{registry.writer}@") + path, str(by_url.clone))
    assert by_url.files() == FILES
    by_header = Git(tmp_path / "by-header")
    field = f"http.extraHeader=Authorization: Bearer {registry.writer}"
    by_header("-c", field, "clone", registry.endpoint + path, str(by_header.clone))
    assert by_header.files() == FILES


def test_pushing_by_git_is_refused_with_what_to_do(registry: Registry, tmp_path: Path) -> None:
    repository = publish(registry, "pushed")
    git = Git(tmp_path / "home")
    git(
        "clone",
        registry.endpoint.replace("://", f"://alice:{registry.writer}@") + f"/kernels/{repository}",
        str(git.clone),
    )
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git("-C", str(git.clone), *who, "commit", "--allow-empty", "-m", "x")
    refused = git("-C", str(git.clone), "push", check=False)
    assert refused.returncode != 0
    assert "403" in refused.stderr
