"""`fabolas` and the methods of the paper, with their defaults.

Where a training passes through epochs, `fabolas` is used as its documentation says: the fidelity has reports and
continues trainings. The published methods do not know reports. Runs are by `Study.ask` and `tell`: the verification of
`minimize` is not used. The answer of Hyperband is that of BOHB: the best at the largest size so far.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.peers.session import LargestSoFar, Session
from fabolas import Study, Suggestion


def _run(session: Session, strategy: str) -> None:
    curves = session.continues and strategy == "fabolas"
    fidelity = replace(session.fidelity, reports=True, resume=True) if curves else session.fidelity
    study = Study(
        session.problem.space,
        {session.fidelity_name: fidelity},
        strategy=strategy,
        seed=session.seed,
        clock=session.clock,
    )
    largest = LargestSoFar()
    with study:
        while not session.over:
            suggestion = study.ask(remaining=session.remaining)
            size = suggestion.fidelity[session.fidelity_name]
            loss, cost = session.evaluate(suggestion.config, size)
            if curves:
                _report(session, study, suggestion, cost)
            study.tell(suggestion, loss, cost=cost)
            if strategy == "hyperband":
                session.answer(largest.after(size, loss, suggestion.config))
                continue
            with session.looking():
                incumbent = study.incumbent()
            session.answer(None if incumbent is None else incumbent.config)


def _report(session: Session, study: Study, suggestion: Suggestion, cost: float) -> None:
    """Report the epochs that the training passed through."""
    end = int(suggestion.fidelity[session.fidelity_name])
    _, whole = session.passed(suggestion.config, end)
    for epoch in range(int(session.fidelity.low), end):
        loss, until = session.passed(suggestion.config, epoch)
        since = cost - (whole - until)  # without what an earlier training had paid for
        if since > 0.0:
            study.tell_report(suggestion, loss, since, **{session.fidelity_name: epoch})


fabolas = partial(_run, strategy="fabolas")
fabolas2017 = partial(_run, strategy="fabolas2017")
mtbo = partial(_run, strategy="mtbo")
hyperband = partial(_run, strategy="hyperband")
random = partial(_run, strategy="random")
