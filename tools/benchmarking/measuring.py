"""Runs benchmarks again and again, and in turn, and records what they say."""

import time

from benchmarking import machine
from benchmarking import peers
from benchmarking import suites

# Above this load per core, before anything has begun, figures are hints.
_BUSY_LOAD_PER_CORE = 0.5


def select(built, matches):
    """The stable names of the benchmarks whose keys match, by suite."""
    selected = {}
    for suite in built.values():
        names = [name for name in suite.run_names() if matches(f"{suite.name}/{name}")]
        if names:
            selected[suite.name] = names
    return selected


def programs_of(built, folder):
    """The suite that has each program that peers have too, among the suites of a folder of benchmarks."""
    found = {}
    for suite in built.values():
        if suite.name != folder and not suite.name.startswith(f"{folder}/"):
            continue
        for name in suite.run_names():
            if name not in peers.PROGRAMS:
                continue
            if name in found:
                raise suites.RunError(f"both {found[name]} and {suite.name} have the program {name}")
            found[name] = suite.name
    return found


class _Session:
    """What a measurement has in common: machine, files, clock."""

    def __init__(self, repository, folder, repetitions):
        self.recorder = suites.Recorder(folder)
        self.machine = {**machine.describe(repository), "repetitions": repetitions}
        self._begin = time.monotonic()
        if self.machine["load_before"][0] > _BUSY_LOAD_PER_CORE * self.machine["cores"]:
            suites.say(f"the machine is busy (load {self.machine['load_before'][0]}): take the figures as hints")

    def seconds(self):
        return time.monotonic() - self._begin

    def close(self):
        self.machine.update(load_after=machine.load_average(), seconds=round(self.seconds(), 1))
        self.recorder.write(self.machine)


def run_rounds(repository, built, selected, repetitions, min_time, limit_seconds, folder):
    """Runs all selected benchmarks `repetitions` times, round by round, so that a noisy minute hits all alike.

    What would end after `limit_seconds`, if any, going by its last time, is not repeated. Returns the suites that failed.
    """
    session = _Session(repository, folder, repetitions)
    failures, took = set(), {}
    total, count = repetitions * len(selected), 0
    for round_number in range(1, repetitions + 1):
        for name, names in selected.items():
            count += 1
            begin = session.seconds()
            if limit_seconds and name in took and begin + took[name] > limit_seconds:
                suites.say(f"[{count}/{total}] {name}: not repeated, to end within {limit_seconds:g} s")
                continue
            try:
                session.recorder.add(name, built[name].run(names, min_time))
                outcome = f"{session.seconds() - begin:.1f} s"
            except suites.RunError as error:
                failures.add(name)
                outcome = str(error)
            took[name] = session.seconds() - begin
            suites.say(f"[{count}/{total}] {name}: {len(names)} benchmarks, round {round_number}: {outcome}")
    session.close()
    return sorted(failures)


def run_in_turn(repository, built, own, others, programs, repetitions, min_time, folder):
    """Runs each program in turn: ours, theirs, ours, and so on. Returns the keys that failed.

    `own` are maps from program to suite, `others` are peers. A suite that has a program for typed actors too runs both.
    """
    session = _Session(repository, folder, repetitions)
    failures = []

    def run(name, program, call):
        key = f"{name}/{program}"
        if key in failures:
            return
        try:
            document = call()
        except suites.RunError as error:
            failures.append(key)
            suites.say(str(error))
            return
        if document is not None:
            session.recorder.add(name, document)

    for number, program in enumerate(programs, 1):
        for _ in range(repetitions):
            for suite in [suite_of[program] for suite_of in own if program in suite_of]:
                for name in (program, peers.typed(program)):
                    if name in built[suite].run_names():
                        run(suite, name, lambda suite=suite, name=name: built[suite].run([name], min_time))
            for peer in others:
                run(f"peers/{peer.name}", program, lambda peer=peer: peers.run_peer(peer, program))
        suites.say(f"[{number}/{len(programs)}] {program}: {repetitions} rounds, {session.seconds():.0f} s so far")
    session.close()
    return failures


def run_against(repository, old, new, selected, repetitions, min_time, folder):
    """Runs each selected benchmark of two trees in turn, and each tree first as often as the other.

    `old` and `new` are built suites by name. The results are in `folder`/old and `folder`/new. Returns the keys that
    failed.
    """
    sides = {"old": old, "new": new}
    sessions = {side: _Session(repository, folder / side, repetitions) for side in sides}
    failures = []
    keys = [(suite, name) for suite, names in selected.items() for name in names]
    for number in range(1, repetitions + 1):
        for suite, name in keys:
            for side in ("old", "new") if number % 2 else ("new", "old"):
                failed = f"{side} {suite}/{name}"
                if failed in failures:
                    continue
                try:
                    sessions[side].recorder.add(suite, sides[side][suite].run([name], min_time))
                except suites.RunError as error:
                    failures.append(failed)
                    suites.say(str(error))
        seconds = sessions["new"].seconds()
        suites.say(f"[{number}/{repetitions}] {len(keys)} benchmarks of both trees, {seconds:.0f} s so far")
    for session in sessions.values():
        session.close()
    return failures
