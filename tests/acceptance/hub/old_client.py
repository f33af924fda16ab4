"""What a user of huggingface_hub does, for any release from 0.23 on: run by test_old_clients.py in the client's Python.

old_client.py push REPO TYPE FOLDER     makes the repository, uploads the folder, then a file to a branch, and tags it
old_client.py pull REPO TYPE FOLDER     a whole snapshot, and one file by itself, must be what FOLDER holds
"""

import pathlib
import sys

import huggingface_hub
from huggingface_hub import HfApi

BRANCH, TAG = "next", "v0.1"


def push(repo, kind, folder):
    api = HfApi()
    api.create_repo(repo, repo_type=kind, exist_ok=True)
    api.upload_folder(repo_id=repo, repo_type=kind, folder_path=folder, commit_message="the folder")
    api.create_branch(repo, repo_type=kind, branch=BRANCH)
    more = {"repo_id": repo, "repo_type": kind, "revision": BRANCH}
    for name, data in (("branch.txt", b"on a branch"), ("gone.txt", b"gone soon")):
        api.upload_file(path_or_fileobj=data, path_in_repo=name, **more)
    api.delete_file("gone.txt", **more)
    api.create_tag(repo, repo_type=kind, tag=TAG, revision=BRANCH)
    api.create_repo(repo, repo_type=kind, exist_ok=True)  # a second time is no error


def pull(repo, kind, folder):
    held = files_in(folder)
    api = HfApi()
    listed = set(api.list_repo_files(repo, repo_type=kind)) - {".gitattributes"}
    assert listed == set(held), listed ^ set(held)
    snapshot = huggingface_hub.snapshot_download(repo, repo_type=kind, ignore_patterns=".gitattributes")
    assert files_in(snapshot) == held
    for name in held:
        path = huggingface_hub.hf_hub_download(repo, name, repo_type=kind, force_download=True)
        assert pathlib.Path(path).read_bytes() == held[name], name
    tagged = pathlib.Path(huggingface_hub.hf_hub_download(repo, "branch.txt", repo_type=kind, revision=TAG))
    assert tagged.read_bytes() == b"on a branch"
    refs = api.list_repo_refs(repo, repo_type=kind)
    assert {BRANCH, "main"} <= {ref.name for ref in refs.branches} and [ref.name for ref in refs.tags] == [TAG]
    assert "gone.txt" not in api.list_repo_files(repo, repo_type=kind, revision=BRANCH)
    assert len(api.list_repo_commits(repo, repo_type=kind)) >= 2


def files_in(folder):
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


if __name__ == "__main__":
    {"push": push, "pull": pull}[sys.argv[1]](*sys.argv[2:])
