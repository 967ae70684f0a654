"""The server answers only its own pages, only reads, and forbids the browser all that a page does not need."""

import json
from pathlib import Path

import pytest

import fabolas
from fabolas.dashboard.app import HEADERS, Lifetime, make_app
from fabolas.report.content import FIGURE_NAMES
from tests.helpers.asgi import Client
from tests.helpers.problems import SIZE, SPACE, evaluate
from tests.helpers.study_files import HOSTILE_NAME, write_hostile_study, write_study


def client_of(path: Path, lifetime: Lifetime | None = None) -> Client:
    return Client(make_app(path, lifetime or Lifetime()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    write_study(folder / "a.db", 6)
    write_study(folder / "b c%.db", 4, seed=1)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Client:
    return client_of(folder)


PLACES = [
    "/",
    "/sections",
    "/figures/comparison",
    "/study/a.db/",
    "/study/a.db/sections",
    "/study/a.db/trials",
]


@pytest.mark.parametrize("place", [*PLACES, "/static/page.js", "/static/plotly.js", "/none"])
def test_every_answer_has_the_headers_that_protect_it(client: Client, place: str) -> None:
    answer = client.get(place)
    assert answer.status_code == (404 if place == "/none" else 200)
    for name in HEADERS.keys() - {"cache-control"}:
        assert answer.headers[name] == HEADERS[name]


def test_the_policy_allows_no_inline_script_no_eval_and_no_other_server() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8017", "", "10.0.0.1"]
)
def test_another_host_name_is_refused(client: Client, host: str) -> None:
    assert client.get("/", host).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:9999"])
def test_local_names_are_accepted_with_any_port(client: Client, host: str) -> None:
    assert client.get("/", host).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_only_reads(client: Client, method: str) -> None:
    assert {client.request(method, place).status_code for place in PLACES} == {405}


@pytest.mark.parametrize(
    "name", ["..%2Fa.db", "%2Fetc%2Fpasswd", "..", "none.db", "a.db-wal", "..%2F..%2Fsecret.db"]
)
def test_only_studies_of_the_directory_can_be_named(client: Client, folder: Path, name: str) -> None:
    write_study(folder.parent / "secret.db", 1)
    assert client.get(f"/study/{name}/sections").status_code == 404


def test_names_with_special_characters_can_be_opened(client: Client) -> None:
    assert 'href="study/b%20c%25.db/"' in client.get("/").text
    assert "<h1>b c%</h1>" in client.get("/study/b%20c%25.db/").text


def test_each_figure_is_a_figure_or_a_reason_and_others_do_not_exist(client: Client) -> None:
    for name in FIGURE_NAMES:
        panel = client.get(f"/study/a.db/figures/{name}").json()
        assert (panel["figure"] is None) != (panel["reason"] is None)
    assert client.get("/study/a.db/figures/none").status_code == 404


def test_the_page_has_the_content_of_the_report(client: Client, folder: Path) -> None:
    page, best = client.get("/study/a.db/").text, fabolas.load(folder / "a.db").best_config
    assert repr(best["C"]) in page
    assert "<script>" not in page
    assert len(client.get("/study/a.db/trials").json()["rows"]) == 6


def test_markup_of_the_user_is_escaped_in_sections(tmp_path: Path) -> None:
    client = client_of(write_hostile_study(tmp_path / "<b>run.db"))
    for text in (client.get("/").text, *client.get("/sections").json().values()):
        assert "<script>document" not in text
        assert "<img" not in text
        assert "<b>" not in text
    assert HOSTILE_NAME in json.dumps(client.get("/trials").json())


def test_a_file_that_does_not_exist_yet_is_waited_for(tmp_path: Path) -> None:
    client = client_of(tmp_path / "run.db")
    assert "Waiting for the run to start" in client.get("/").text
    assert client.get("/trials").status_code == 503
    write_study(tmp_path / "run.db", 3)
    assert "The best configuration" in client.get("/sections").json()["answer"]


def test_a_file_that_is_no_study_says_so_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_text("hello")
    assert "is not a study of fabolas" in client_of(tmp_path / "run.db").get("/").text


def test_events_report_a_change_and_the_end(tmp_path: Path) -> None:
    lifetime = Lifetime()
    lifetime.ending = True
    write_study(tmp_path / "run.db", 2)
    answer = client_of(tmp_path / "run.db", lifetime).get("/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    kinds = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event")]
    assert kinds == ["version", "end"]


def test_the_state_of_a_run_is_shown_while_it_lasts(tmp_path: Path) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        evaluate(study, study.ask())
        study.ask()
        sections = client_of(tmp_path / "run.db").get("/sections").json()
    assert "chip live" in sections["head"]
    assert "Trial #1 is running" in sections["run"]
