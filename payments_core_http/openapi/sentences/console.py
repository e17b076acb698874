"""What the fields of webhooks, the partner's configuration and the sandbox mean (contract §8,
§11).
"""

from __future__ import annotations

from collections.abc import Mapping

BY_NAME: Mapping[str, str] = {
    # Endpoints and deliveries
    "attempts": "How many times it has been sent since its last replay.",
    "deliveredAt": "When the endpoint accepted it; absent until then.",
    "deliveries": "The deliveries, newest first.",
    "deliveryId": "The delivery's id.",
    "emitted": "Whether this version of the service sends the event.",
    "eventCatalog": "Every event that can be subscribed to.",
    "eventId": "The event's id.",
    "eventName": "The event's name.",
    "meaning": "What the event means.",
    "name": "The name.",
    "nextAttemptAt": "When it is sent again; absent if no attempt is scheduled.",
    "outboxEventId": "The event's id.",
    "overlapSeconds": "For how many seconds the previous secret also signs deliveries.",
    "payload": "What the event is about; the fields depend on the event.",
    "requestBody": "The exact text that was sent.",
    "responseBody": "The start of the endpoint's response; null without one.",
    "responseStatus": "The HTTP status of the last attempt; null if there was no response.",
    "signingSecret": "The secret that signs the endpoint's deliveries; shown only at creation"
    " and rotation.",
    "since": "The time from which events are sent again.",
    "subscribedEvents": "The names of the events to send; an empty list means every event.",
    "url": "Where deliveries are sent.",
    "webhookEndpoint": "The endpoint.",
    "webhookEndpointId": "The endpoint's id.",
    "webhookEndpoints": "The endpoints, oldest first.",
    "webhookId": "The endpoint's id.",
    # What receivers may rely on
    "dedupe": "The headers by which a receiver detects duplicates.",
    "deliveryPolicy": "What a receiver may rely on.",
    "deliveryRetryHeader": "The header that is the same in every retry of a delivery.",
    "eventHeader": "The header that is the same in every delivery of an event.",
    "failureReason": "Why it failed, in a sentence; null if nothing failed.",
    "health": "Whether the endpoint accepts its deliveries.",
    "guarantee": "How often an event is delivered.",
    "localPrivateDestinationsAllowed": "Whether endpoints may be on this machine; only in a"
    " sandbox.",
    "maxAttempts": "The number of failed attempts after which a delivery is abandoned.",
    "webhooks": "What this deployment's webhooks can do.",
    # The configuration
    "credentialMode": "What the credential is for: `app_secret`, for backends.",
    "credentialType": "Whether the key is standard or restricted.",
    "mode": "The environment's mode.",
    "partnerId": "The partner's name in payment addresses.",
    "products": "The products that the environment has.",
    "scopes": "What the key may call.",
    "supportedApiVersions": "The dated contracts that this deployment supports.",
    # The sandbox
    "advanceSeconds": "By how many seconds to advance the clock.",
    "bankTransferId": "The bank's own id of the transfer.",
    "block": "The block that the transfer is in; null if a reorg has dropped it.",
    "count": "How many blocks to add.",
    "dependency": "The dependency that fails: `chain`, `kyc`, `bank` or `router`.",
    "depth": "How many of the last blocks to drop.",
    "failures": "The failures that will occur next.",
    "final": "The newest final block.",
    "hash": "The block's hash.",
    "jobsRun": "How many jobs were run.",
    "latest": "The newest block.",
    "number": "The block's number.",
    "operation": "The operation that fails; `*` means any.",
    "reinclude": "Whether the dropped transactions come back in other blocks.",
    "reverts": "Whether the transaction fails on the chain.",
    "succeeded": "Whether the transfer succeeded on the chain.",
    "times": "How many more times the operation fails.",
}
