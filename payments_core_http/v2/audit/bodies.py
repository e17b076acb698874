"""The query of the audit trail."""

from __future__ import annotations

from payments_core.engine.audit import ActorType
from payments_core.tenants.audit_trail import Filter
from payments_core_http.v2.types import Moment
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class ListAuditEntries(PageQuery):
    """Only entries that match every given filter. A page may be short and still have a next one."""

    actorType: ActorType | None = None
    """Only changes by this kind of actor."""
    actorId: Filter | None = None
    """Only changes by this actor: the id of a key, the name of an operator, and so on."""
    operation: Filter | None = None
    """Only changes by this operation, such as `payments.refund`."""
    objectId: Filter | None = None
    """Only changes of this object, such as the id of a Payment."""
    createdAfter: Moment | None = None
    """Only those from this moment on."""
    createdBefore: Moment | None = None
    """Only those before this moment."""
