"""What users have beside an Executor: a Dask client, or the address of a Ray cluster."""

import os
import subprocess
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

import fabolas.execution.choose
from fabolas.execution.choose import executor_for
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
@pytest.mark.parametrize("executor", ["dask"], indirect=True)
def test_a_dask_client_needs_no_further_words(executor: Executor) -> None:
    from dask.distributed import Client

    client = Client.current()  # of the cluster that the tests share
    result = minimize(by_process, max_trials=4, executor=client)
    assert {trial.status for trial in result.trials} == {"complete"}
    assert os.getpid() not in {trial.info["process"] for trial in result.trials}
    assert client.status == "running"
    assert executor.submit(abs, -3).result() == 3


# In a process of its own, because that of the tests is connected to Ray already.
CONNECTED = """
import os, sys
import ray
from tests.helpers.problems import minimize
def by_process(config, size):
    import fabolas
    return fabolas.Outcome(config["x"], info={"process": os.getpid()})
result = minimize(by_process, max_trials=4, executor=sys.argv[1])
assert {trial.status for trial in result.trials} == {"complete"}, result.trials
assert os.getpid() not in {trial.info["process"] for trial in result.trials}
assert not ray.is_initialized()
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["ray"], indirect=True)
def test_an_address_of_ray_is_connected_to_and_left_at_the_end(ray_address: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", CONNECTED, ray_address]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["ray"], indirect=True)
@pytest.mark.parametrize("address", ["auto", "local"])
def test_a_program_that_is_connected_to_ray_stays_so(address: str, executor: Executor) -> None:
    import ray

    made, release = executor_for(address)
    assert made.submit(lambda: 3).result() == 3
    release()
    assert ray.is_initialized()
    assert executor.submit(lambda: 3).result() == 3


def test_what_is_not_an_executor_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, kind in ((3, TypeError), ("cluster", ValueError)):
        with pytest.raises(kind, match=r"a Dask Client, or the address of a Ray cluster such as 'auto'"):
            minimize(by_process, max_trials=1, executor=wrong)
    monkeypatch.setattr(fabolas.execution.choose, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"Ray is not installed; .*pip install 'fabolas\[ray\]'"):
        minimize(by_process, max_trials=1, executor="ray://head:10001")
