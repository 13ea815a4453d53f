"""Another commit, to measure in turn with this tree."""

import os
import pathlib
import shutil
import subprocess

from benchmarking.suites import RunError, say

# Written by tools/setup and by users; they are in no commit. The other tree uses the disk cache
# of this one.
_BAZEL_FILES = (".bazelrc.machine", ".bazelrc.user")


def cache_folder():
    """Where the trees of other commits are."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "fraktor" / "revisions"


def _git(repository, *arguments):
    try:
        return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise RunError(f"git: {error}") from error


def commit_of(repository, revision):
    """The hash of the commit that `revision` names."""
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode != 0:
        raise RunError(f'"{revision}" names no commit of {repository}; give a hash, a tag or a branch')
    return done.stdout.decode().strip()


def tree_of(repository, commit):
    """The folder that has the files of `commit`. It stays in the cache, so that Bazel builds it only once."""
    folder = cache_folder() / commit
    if not folder.is_dir():
        say(f"writing the files of {commit[:12]} to {folder}")
        fresh = folder.with_name(f"{commit}.{os.getpid()}")
        fresh.mkdir(parents=True)
        archive = _git(repository, "archive", commit)
        if archive.returncode == 0:
            archive = subprocess.run(
                ["tar", "-x", "-C", str(fresh)], input=archive.stdout, capture_output=True, check=False
            )
        if archive.returncode != 0:
            shutil.rmtree(fresh)
            raise RunError(f"the files of {commit} cannot be written: {archive.stderr.decode().strip()[-500:]}")
        fresh.rename(folder)  # whole or not at all
    for name in _BAZEL_FILES:
        if (pathlib.Path(repository) / name).is_file():
            shutil.copyfile(pathlib.Path(repository) / name, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    return folder
