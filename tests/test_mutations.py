"""The mutations of ``make mutations`` fit the sources: each has one place, and tests that exist."""

import pytest

from tests.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_has_one_place_and_its_tests_exist(mutation: Mutation) -> None:
    source = (ROOT / "src" / "fabolas" / mutation.file).read_text(encoding="utf-8")
    assert source.count(mutation.old) == 1
    assert mutation.new not in source
    assert (ROOT / "tests" / mutation.tests.split()[0]).is_file()
