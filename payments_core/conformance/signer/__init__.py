"""The signer suite: the checks for a signer of EVM transactions before funds depend on it.

With pytest, a few lines make it run::

    class TestMySigner(SignerConformance):
        environment_ids = ("env_a", "env_b")  # which have keys
        secrets = ("the password",)

        def open(self):
            return my_package.open_url("mykeys://user:the password@host.example")

Any other runner calls each `test_...` method of an instance; a check of what the adapter does not
declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.signer.checks import SignerChecks
from payments_core.conformance.signer.harness import Harness

__all__ = ["Harness", "SignerConformance"]


class SignerConformance(SignerChecks):
    """Every check of the signer port; override the hooks and declare what the adapter can do."""
