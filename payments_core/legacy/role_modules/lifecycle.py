"""The states of a role module's installation, and the pure steps through them."""

from __future__ import annotations

from typing import Any

from payments_core.clock import Instant
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.legacy.role_modules.record import RoleModuleInstallation

IN_PROGRESS = ("deploying", "enabling")

ROLE_MODULE = StateMachine(
    "role module",
    (
        *(
            Transition(source, trigger, target, why=why)
            for source in (None, "failed")
            for trigger, target, why in (
                ("deploy", "deploying", "The owner has signed; the module has no code yet."),
                ("enable", "enabling", "The owner has signed; the module has its code already."),
            )
        ),
        Transition("deploying", "deployed", "enabling", why="The module's code is on the chain."),
        Transition("enabling", "enabled", "active", why="The module is enabled in the vault."),
        *transitions_from(
            IN_PROGRESS, "fail", "failed", why="A transaction failed permanently, without effect."
        ),
        *transitions_from(
            ("enabling", "active"), "undo", "failed",
            why="A reorg beyond finality undid a transaction, and it failed when sent again.",
        ),
    ),
    terminal=(),
    actions={"enable": "deploy"},
)  # fmt: skip


def apply_trigger(
    installation: RoleModuleInstallation, trigger: str, *, now: Instant, **changes: Any
) -> Step[RoleModuleInstallation]:
    """The installation after `trigger`, with `changes`. Raises InvalidState."""
    source = installation.status or None
    row = ROLE_MODULE.step(source, trigger)
    return Step(
        evolve(
            installation,
            status=row.target,
            status_version=installation.status_version + 1,
            updated_at_ms=now,
            **changes,
        )
    )
