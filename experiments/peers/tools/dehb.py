"""DEHB (Awad et al. 2021), by ask and tell, with its defaults (eta 3, one worker). The answer is `get_incumbents`."""

from __future__ import annotations

import tempfile

from dehb import DEHB

from experiments.peers.session import Session, configuration_space


def run(session: Session) -> None:
    """Differential evolution in the brackets of Hyperband."""
    with tempfile.TemporaryDirectory() as directory:
        dehb = DEHB(
            cs=configuration_space(session.problem, session.seed),
            min_fidelity=float(session.fidelity.low),
            max_fidelity=session.target,
            seed=session.seed,
            n_workers=1,
            save_freq=None,
            output_path=directory,
            log_level="ERROR",
        )
        while not session.over:
            job = dehb.ask()
            loss, cost = session.evaluate(dict(job["config"]), job["fidelity"])
            dehb.tell(job, {"fitness": loss, "cost": cost})
            with session.looking():
                config, _ = dehb.get_incumbents()
            session.answer(dict(config))
