"""The peers: CAF and Erlang run the same programs as we do, in turn with us.

Their Debian packages are used where they are installed. Where not, they are downloaded and unpacked into the user's
cache: a benchmark leaves the machine as it was, and the disk cache of the build, which depends on what is installed,
stays valid.
"""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import statistics
import subprocess

from benchmarking import machine
from benchmarking import results
from benchmarking.suites import RunError, say

PACKAGES = {"caf": "libcaf-dev", "erlang": "erlang-base"}
_RUN_SECONDS = 90

# Programs that all have, by name; the limit has no ask, and Erlang no foreign threads.
PROGRAMS = (
    "ping_pong/w:1",
    "ping_pong/w:2",
    "pairs/1/w:2",
    "pairs/10/w:2",
    "pairs/100/w:1",
    "pairs/100/w:2",
    "pairs/1000/w:2",
    "ring/1000/w:1",
    "ring/1000/w:2",
    "fan_in/1/w:2",
    "fan_in/10/w:2",
    "fan_in/100/w:2",
    "fan_in/1000/w:2",
    "fan_in_foreign/2/w:2",
    "spawn/w:2",
    "skynet/w:2",
    "ask/w:1",
    "ask/w:2",
    "latency_idle/w:2",
    "latency_busy/2/w:2",
    "latency_busy/100/w:2",
    "remote_one_way/w:2",
    "remote_round_trip/w:2",
)


def typed(program):
    """The name of one of our programs when typed actors are in it."""
    return f"typed_{program}"


_NOT_IN = {"erlang": {"fan_in_foreign/2/w:2"}}


def cache_folder():
    """Where unpacked packages and compiled programs live."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "fraktor" / "peers"


def _run(command, what, **options):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise RunError(f"{what}: {error}") from error
    if done.returncode != 0:
        raise RunError(
            f"{what}: {command[0]} ended with code {done.returncode}:\n{(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


def _download(package, folder):
    command = [
        "apt-get",
        "-qq",
        "-o",
        "Debug::NoLocking=1",
        "-o",
        f"Dir::Cache::archives={folder}",
        "-o",
        "APT::Sandbox::User=",
        "--download-only",
        "--no-install-recommends",
        "--yes",
        "install",
        package,
    ]
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    what = f"downloading {package}"
    try:
        _run(command, what, timeout=600)
    except RunError:
        if os.geteuid() != 0:
            raise
        _run(["apt-get", "-qq", "update"], what, timeout=600)  # the lists may be missing or old
        _run(command, what, timeout=600)


def _unpacked(package):
    """The root of the file system that `package` is in: / if it is installed."""
    for tool in ("dpkg-query", "dpkg", "apt-get"):
        if shutil.which(tool) is None:
            raise RunError(f"peers come from Debian's packages, and there is no {tool} here")
    status = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True, check=False
    )
    if status.stdout == "installed":
        return pathlib.Path("/")
    root = cache_folder() / package
    if root.is_dir():
        return root
    say(f"unpacking {package} into {root}")
    archives = cache_folder() / f"{package}.archives"
    _download(package, archives)
    fresh = root.with_name(f"{package}.{os.getpid()}")
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg", "-x", archive, fresh], f"unpacking {archive.name}")
    fresh.rename(root)  # whole or not at all
    shutil.rmtree(archives)
    return root


def _compiled(source, flags, compile_to):
    """The path of what `compile_to(path)` makes of `source`; made again when source or flags change."""
    digest = hashlib.sha256(source.read_bytes() + repr(flags).encode()).hexdigest()[:16]
    folder = cache_folder() / "programs" / f"{source.stem}-{digest}"
    if not folder.is_dir():
        say(f"compiling {source.name}")
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        compile_to(fresh)
        fresh.rename(folder)
    return folder


class Caf:
    """Debian's CAF."""

    name = "caf"

    def __init__(self, sources):
        root = _unpacked(PACKAGES["caf"])
        source = sources / "caf_programs.cc"
        library = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
        flags = ["-O3", "-DNDEBUG", "-std=c++20", "-pthread", "-isystem", str(root / "usr" / "include")]
        if root == pathlib.Path("/"):
            flags = flags[:-2]
        link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lcaf_io", "-lcaf_core"]
        compiler = os.environ.get("CXX", "c++")
        folder = _compiled(
            source,
            [compiler] + flags + link,
            lambda out: _run(
                [compiler] + flags + [source, "-o", out / "caf_programs"] + link, f"compiling {source.name}"
            ),
        )
        self._program = folder / "caf_programs"

    def command(self, program):
        return [str(self._program), program], dict(os.environ)


class Erlang:
    """Debian's Erlang/OTP."""

    name = "erlang"

    def __init__(self, sources):
        self._root = _unpacked(PACKAGES["erlang"]) / "usr" / "lib" / "erlang"
        runtimes = sorted(self._root.glob("erts-*/bin"))
        if not runtimes:
            raise RunError(f"{self._root} has no erts-*/bin; remove {cache_folder()} to unpack Erlang again")
        self._runtime = runtimes[-1]
        source = sources / "erlang_programs.erl"
        self._folder = _compiled(
            source,
            [str(self._runtime)],
            lambda out: _run(
                [
                    self._runtime / "erlexec",
                    "-noshell",
                    "-eval",
                    f'case compile:file("{source}", [report, {{outdir, "{out}"}}]) of '
                    "{ok, _} -> halt(0); _ -> halt(1) end.",
                ],
                f"compiling {source.name}",
                env=self._environment(),
            ),
        )

    def _environment(self):
        # The start script has its installed place written into it; these are what it would set.
        return {
            **os.environ,
            "ROOTDIR": str(self._root),
            "BINDIR": str(self._runtime),
            "EMU": "beam",
            "PROGNAME": "erl",
        }

    @staticmethod
    def _distribution():
        # Both nodes are on this machine, and only the other one listens: so no daemon has to know of them.
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        return (
            "-name here@127.0.0.1 -setcookie peers -start_epmd false -dist_listen false "
            f"-erl_epmd_port {port}"
        ).split()

    def command(self, program):
        workers = re.search(r"/w:(\d+)$", program).group(1)
        return [
            str(self._runtime / "erlexec"),
            "+S",
            f"{workers}:{workers}",
            "+P",
            "4000000",
            "-noshell",
            "-pa",
            str(self._folder),
            *(self._distribution() if program.startswith("remote_") else ()),
            "-run",
            "erlang_programs",
            "main",
            program,
        ], self._environment()


def run_peer(peer, program):
    """Runs one program of a peer; returns a document like Google Benchmark's, or None if the peer does not have it."""
    if program in _NOT_IN.get(peer.name, ()):
        return None
    command, environment = peer.command(program)
    machine.touch_memory()
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{peer.name} {program} was ended after {_RUN_SECONDS} s") from error
    try:
        return {"context": {}, "benchmarks": [{**json.loads(done.stdout), "run_type": "iteration"}]}
    except json.JSONDecodeError as error:
        raise RunError(
            f"{peer.name} {program} ended with code {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()[-500:]}"
        ) from error


def _delivers_nothing(figures):
    return bool(figures.get("delivered")) and not any(figures["delivered"])


def ratio(ours, theirs, metric):
    """How many times better we are: above 1 means that we are. None where one side has nothing to compare.

    A latency that a side does not have because no message arrived is infinitely worse.
    """
    if not ours.get(metric) or not theirs.get(metric):
        if ours.get(metric) and _delivers_nothing(theirs):
            return float("inf")
        if theirs.get(metric) and _delivers_nothing(ours):
            return 0.0
        return None
    mine, other = statistics.median(ours[metric]), statistics.median(theirs[metric])
    if not results.METRICS[metric].bigger_is_better:
        mine, other = other, mine
    if other == 0:
        return float("inf") if mine else 1.0
    return mine / other


def ratio_lines(loaded, ours, peers, programs):
    """One line per program, metric and peer: `ratio <bench>/<param>/w<workers> <peer> <ours divided by theirs>`.

    Programs that typed actors have too are shown twice.
    """
    lines = []
    for program in programs:
        key = ours.get(program, program)
        for name in (program, typed(program)):
            bench, _, rest = name.partition("/")
            rest = rest.replace("w:", "w")
            own = loaded.samples.get(key.removesuffix(program) + name, {})
            for metric in ("items_per_second", "p50_us", "p99_us", "delivered", "cores"):
                shown = bench if metric == "items_per_second" else f"{bench}_{metric.removesuffix('_us')}"
                for peer, prefix in peers.items():
                    value = ratio(own, loaded.samples.get(f"{prefix}/{program}", {}), metric)
                    if value is not None:
                        lines.append(f"ratio {shown}/{rest} {peer} {value:.3g}")
    return lines
