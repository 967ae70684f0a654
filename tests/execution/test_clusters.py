"""What users have beside an Executor: a Dask client, or the address of a Ray cluster."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fabolas.execution.clusters
from fabolas.execution.clusters import executor_for
from tests.helpers.problems import minimize


def by_process(config: dict[str, Any], size: int) -> fabolas.Outcome:
    return fabolas.Outcome(config["x"], info={"process": os.getpid()})


def test_an_executor_is_taken_as_it_is_and_not_shut_down() -> None:
    with ThreadPoolExecutor(1) as threads:
        executor, release = executor_for(threads)
        release()
        assert executor is threads
        assert executor.submit(abs, -3).result() == 3


@pytest.mark.slow
def test_a_dask_client_needs_no_further_words() -> None:
    from dask.distributed import Client

    arguments: dict[str, Any] = {"dashboard_address": ":0", "threads_per_worker": 1}
    with Client(n_workers=2, **arguments) as client:
        result = minimize(by_process, max_trials=4, executor=client)
        assert {trial.status for trial in result.trials} == {"complete"}
        assert os.getpid() not in {trial.info["process"] for trial in result.trials}
        assert client.status == "running"


@pytest.mark.slow
def test_an_address_of_ray_is_connected_to_and_left_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray would otherwise warn of
    import ray

    if ray.is_initialized():
        pytest.skip("another test of this process uses Ray")
    result = minimize(by_process, max_trials=4, executor="local")
    assert {trial.status for trial in result.trials} == {"complete"}
    assert os.getpid() not in {trial.info["process"] for trial in result.trials}
    assert not ray.is_initialized()


def test_what_is_not_an_executor_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, kind in ((3, TypeError), ("cluster", ValueError)):
        with pytest.raises(kind, match=r"a Dask Client, or the address of a Ray cluster such as 'auto'"):
            minimize(by_process, max_trials=1, executor=wrong)
    monkeypatch.setattr(fabolas.execution.clusters, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"Ray is not installed; .*pip install 'fabolas\[ray\]'"):
        minimize(by_process, max_trials=1, executor="ray://head:10001")
