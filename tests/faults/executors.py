"""Misbehaving executors: whatever an executor does, ``minimize`` returns soon after the budget is used up.

A run returns a result, or raises NoAnswerError with a sentence if no trial completed. Each kind is tried twice: with
a timeout for trials, and with only a grace period after the time budget.
"""

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import fabolas
from fabolas.api import NoAnswerError
from tests.faults.tally import Tried, attempt

BUDGET = 0.25  # seconds
TIMEOUT = 0.15  # seconds until the run stops waiting for a trial
GRACE = 0.2  # seconds after the budget
SLACK = 15.0  # seconds; the machine may be busy


class Fake(Executor):
    """Runs each job in a thread and lets ``number`` say what goes wrong: it counts the jobs from 1."""

    def __init__(self) -> None:
        self.number = 0
        self.released = threading.Event()

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        self.number += 1
        return self.job(lambda: function(*arguments, **named))

    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()

        def finish() -> None:
            result = call()
            if future.set_running_or_notify_cancel():
                future.set_result(result)

        threading.Thread(target=finish, daemon=True).start()
        return future


class LosesEverySecond(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return Future() if self.number % 2 else super().job(call)


class LosesAll(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return Future()


class NeverFinishes(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return super().job(lambda: self.released.wait(60) and call())


class RefusesOnce(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        if self.number == 2:
            raise ConnectionError("the network is down")
        return super().job(call)


class RefusesAlways(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        raise ConnectionError("the network is down")


class RefusesLater(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        if self.number > 3:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return super().job(call)


class ReturnsNumbers(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return super().job(lambda: 42)


class ReturnsNone(Fake):
    """As if no worker ever had the objective."""

    def job(self, call: Callable[[], Any]) -> Any:
        return super().job(lambda: None)


class ReturnsNoFuture(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return None


class ReturnsAnotherJob(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        return super().job(lambda: replace(call(), id=999))


class Raises(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        future.set_exception(OSError("the worker is gone"))
        return future


class RaisesBaseException(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        future.set_exception(SystemExit(3))
        return future


class Cancels(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        future.cancel()
        return future


class CancelsEverySecond(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        return future if self.number % 2 and future.cancel() else super().job(call)


class FinishesTwice(Fake):
    """Runs the job twice; the second result is refused by the future, in the executor's thread."""

    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()

        def twice() -> None:
            future.set_result(call())
            call()

        threading.Thread(target=twice, daemon=True).start()
        return future


class SlowSubmit(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        time.sleep(0.08)
        return super().job(call)


class BlocksInSubmit(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        self.released.wait(60)
        raise RuntimeError("released")


class RunsInSubmit(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        future.set_result(call())
        return future


class Breaks(Fake):
    def job(self, call: Callable[[], Any]) -> Any:
        if self.number == 3:
            raise BrokenExecutor("the pool is broken")
        return super().job(call)


class ShutsDown(ThreadPoolExecutor):
    """Is shut down by somebody else after its third job."""

    number = 0

    def submit(self, *arguments: Any, **named: Any) -> Any:
        self.number += 1
        if self.number == 4:
            self.shutdown(wait=False, cancel_futures=True)
        return super().submit(*arguments, **named)


KINDS: dict[str, Callable[[], Executor]] = {
    kind.__name__: kind
    for kind in (
        *(LosesEverySecond, LosesAll, NeverFinishes, RefusesOnce, RefusesAlways, RefusesLater),
        *(ReturnsNumbers, ReturnsNone, ReturnsNoFuture, ReturnsAnotherJob, Raises, RaisesBaseException),
        *(Cancels, CancelsEverySecond, FinishesTwice, SlowSubmit, BlocksInSubmit, RunsInSubmit, Breaks),
    )
}
KINDS["ShutsDown"] = lambda: ShutsDown(2)
KINDS["a process pool whose worker dies"] = lambda: ProcessPoolExecutor(2)
SHORT = ("LosesEverySecond", "RefusesOnce", "ReturnsNoFuture", "BlocksInSubmit", "ShutsDown")


def good(config: dict[str, Any], size: int) -> float:
    time.sleep(0.02)
    return float(config["x"])


def deadly(config: dict[str, Any], size: int) -> float:
    if config["x"] < 0.3:
        os._exit(3)
    return float(config["x"])


def check(name: str, limits: dict[str, float]) -> None:
    """Run on an executor of this kind; these limits end the waiting."""
    executor = KINDS[name]()
    ended: Future[tuple[fabolas.Trial, ...]] = Future()

    def run() -> None:
        try:
            ended.set_result(_trials(executor, limits))
        except BaseException as error:  # noqa: BLE001 - raised again where the future is read
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()  # one that never returns does not end this program
    try:
        for trial in ended.result(BUDGET + TIMEOUT + GRACE + SLACK):
            assert trial.status != "complete" or trial.loss == trial.config["x"], f"a wrong loss: {trial}"
            assert trial.status == "complete" or trial.error, f"no reason: {trial}"
    finally:
        if isinstance(executor, Fake):
            executor.released.set()
        executor.shutdown(wait=False)


def _trials(executor: Executor, limits: dict[str, float]) -> tuple[fabolas.Trial, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the run gave up, and why
        try:
            return fabolas.minimize(
                deadly if isinstance(executor, ProcessPoolExecutor) else good,
                {"x": fabolas.Float(0.0, 1.0)},
                {"size": (10, 1000)},
                time_budget=BUDGET,
                strategy="random",
                seed=0,
                workers=2,
                executor=executor,
                progress=False,
                **limits,
            ).trials
        except NoAnswerError:  # a sentence that says why no trial was completed
            return ()


def run(rng: random.Random, short: bool, count: int | None = None) -> Iterator[Tried]:
    for name in list(SHORT if short else KINDS)[:count]:
        timeout = 10.0 if "process" in name else TIMEOUT  # new processes take a while
        for limit, limits in {"trial_timeout": {"trial_timeout": timeout}, "grace": {"grace": GRACE}}.items():
            yield attempt(f"executor, {limit}", name, check, name, limits)
