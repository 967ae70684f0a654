"""`fabolas` and the methods of the paper, with their defaults."""

from __future__ import annotations

from functools import partial

from experiments.peers.session import Session
from fabolas import Study


def _run(session: Session, strategy: str) -> None:
    problem = session.problem
    study = Study(
        problem.space, problem.fidelities, strategy=strategy, seed=session.seed, clock=session.clock
    )
    with study:
        while not session.over:
            suggestion = study.ask(remaining=session.remaining)
            loss, cost = session.evaluate(suggestion.config, suggestion.fidelity[session.fidelity_name])
            study.tell(suggestion, loss, cost=cost)
            with session.looking():
                incumbent = study.incumbent()
            session.answer(None if incumbent is None else incumbent.config)


fabolas = partial(_run, strategy="fabolas")
fabolas2017 = partial(_run, strategy="fabolas2017")
mtbo = partial(_run, strategy="mtbo")
hyperband = partial(_run, strategy="hyperband")
random = partial(_run, strategy="random")
