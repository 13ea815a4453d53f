"""The rooms of the repository that have simulations, crash tests and mutations: rooms.json."""

import json
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ROOMS = pathlib.Path(__file__).resolve().parent / "rooms.json"


def rooms(means):
    """The rooms that have `means` ("sim", "crash" or "mutate"), with what rooms.json says of it."""
    described = json.loads(ROOMS.read_text())
    return {name: room[means] for name, room in described.items() if means in room}


def positive(text):
    """A number of a command line that must be at least 1."""
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise ValueError(f'"{text}" is not a whole number of at least 1')
    return value


def build(tool, labels, arguments):
    """Builds targets; gives the folder that has the programs, or ends with the error of Bazel."""
    command = ["bazel", "build", "--noshow_progress", "--show_result=0", *arguments, "--", *labels]
    if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:
        sys.exit(f"{tool}: bazel cannot build {' '.join(labels)}")
    done = subprocess.run(
        ["bazel", "info", *arguments, "bazel-bin"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    )
    return pathlib.Path(done.stdout.strip())


def program(folder, label):
    """The program of a target: //a/b:c_test is a/b/c_test."""
    return folder / label.removeprefix("//").replace(":", "/")
