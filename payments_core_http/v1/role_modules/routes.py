"""The row of role modules."""

from __future__ import annotations

from payments_core import errors
from payments_core_http.routing import Route
from payments_core_http.v1.requirements import VAULTS_KEY
from payments_core_http.v1.role_modules import bodies, views
from payments_core_http.v1.role_modules import handlers as role_modules

LEGACY_ROLE_MODULES = (
    Route(
        "POST", "/sdk/v1/deploy-role-module", role_modules.deploy, needs=VAULTS_KEY,
        body=bodies.DeployRoleModule,
        errors=(
            errors.NotFound, errors.AccountSuspended, errors.InvalidState,
            errors.CapabilityNotActive, errors.DependencyFailed,
        ),
        response=views.RoleModuleResponse, operation="deployLegacyRoleModule",
        summary="Deploy the role module of an account's vault, and enable it in the vault.",
    ),
)  # fmt: skip
