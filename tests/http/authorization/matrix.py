"""The cells of the matrix: who calls what, whose objects the path names, and what is wrong with
the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import attrs

from tests.http.api_harness import Seen
from tests.http.authorization.credentials import Credential, credentials, open_page, right
from tests.http.authorization.model import (
    MISSING,
    PRODUCT_OF_SCOPE,
    TABLE,
    Expected,
    Place,
    Row,
    expected,
    permitted,
)
from tests.http.authorization.objects import OWNERS, World, filled
from tests.http.authorization.rewinding import Mark

BY_NAME: Mapping[str, Row] = {row.name: row for row in TABLE}
CROWDED, ALONE, LIVE = Place(), Place(alone=True), Place(mode="production")
PRODUCTS = frozenset(PRODUCT_OF_SCOPE.values()) | {
    "public_checkout", "bank_payouts", "bank_funding", "hosted_onramp", "legacy_sdk",
}  # fmt: skip


@attrs.frozen
class Fault:
    """A cell whose answer is not the model's."""

    cell: str
    wanted: Expected
    why: str

    def __str__(self) -> str:
        return f"{self.cell}: {self.why}"


class Matrix:
    """The world with its credentials, at the moments that cells start from."""

    def __init__(self) -> None:
        self.world = World()
        self.world.add_stranger()
        self.credentials = credentials(self.world)
        self.marks: dict[Place, Mark] = {}
        self.marks[CROWDED] = self.marks[LIVE] = self.world.storage.mark()
        self.marks[ALONE] = self._without_the_stranger()
        self._foreign = tuple(
            id.encode() for populated in (self.world.production, self.world.stranger)
            for name, id in populated.ids.items() if name not in ("appId", "code")
        )  # fmt: skip

    def right(self, row: Row) -> Credential:
        """The credential that may do all that a row asks for."""
        return right(self.credentials, row)

    def place(self, row: Row) -> Place:
        """Where a row can succeed."""
        return ALONE if row.sandbox else CROWDED

    # Families of cells.

    def by_credential(self, row: Row) -> Iterator[Fault]:
        """Every kind of credential, with our own ids in the path."""
        refusals: dict[bytes, str] = {}
        for place in (ALONE, CROWDED) if row.sandbox else (CROWDED,):
            for credential in self.credentials.values():
                if place.alone and credential.facts.tenant == "stranger":
                    continue  # who was never there
                wanted = expected(row, credential.facts, place)
                cell = f"{row.name} with {credential.name}{' alone' if place.alone else ''}"
                seen, faults = self.cell(cell, row, credential, wanted, place)
                yield from faults
                if wanted.status == 401:
                    refusals.setdefault(_body(seen), f"{cell}: {wanted.code}")
        codes = {text.rpartition(": ")[2] for text in refusals.values()}
        if len(refusals) != len(codes):
            yield Fault(row.name, Expected(401), f"refusals differ: {sorted(refusals.values())}")

    def in_the_other_mode(self, row: Row) -> Iterator[Fault]:
        """The process of the other mode opens to nothing of this one's."""
        for name in (
            "nothing", "the app id alone", "a standard key", "a key of the other mode",
            "a restricted key with nothing", "a token with everything", "a session token",
            "a Payment's secret",
        ):  # fmt: skip
            credential = self.credentials[name]
            wanted = expected(row, credential.facts, LIVE)
            cell = f"{row.name} in production with {name}"
            yield from self.cell(cell, row, credential, wanted, LIVE)[1]

    def by_owner(self, row: Row) -> Iterator[Fault]:
        """The right credential, with others' ids in the path: each alone, and all of them."""
        own = self.world.ids(row)
        names = [name for name in own if f"{{{name}}}" in row.path]
        for owner in OWNERS:
            others = self.world.others(row, owner)
            given = [name for name in names if name in others]
            choices = [(name,) for name in given]
            if len(names) > 1 and len(given) == len(names) and owner != "neighbour":
                choices.append(tuple(names))
            for chosen in choices:
                ids = {**own, **{name: others[name] for name in chosen}}
                wanted = owned(row, owner, chosen, len(names))
                cell = f"{row.name} with {' and '.join(chosen)} of {owner}"
                credential, place = self.right(row), self.place(row)
                if owner == "stranger" and place.alone:
                    continue
                seen, faults = self.cell(cell, row, credential, wanted, place, ids=ids)
                yield from faults
                # The parent may be our own, where the child is not; and of two, the first that has
                # not the shape of an id is reported before anything is looked for.
                known = owner == "neighbour" or (owner == "no shape" and len(names) > 1)
                is_known = (known and names[0] in chosen) or row.is_absent
                if wanted == MISSING and not is_known:
                    nobody = {**own, **_only(self.world.others(row, "nobody"), chosen)}
                    never = self.send(row, credential, place, ids=nobody)
                    if _same(seen) != _same(never):
                        yield Fault(cell, wanted, f"not as if it never was: {seen.body!r}")

    def by_account(self, row: Row) -> Iterator[Fault]:
        """A token without a Payment's secret, at a Payment that its account does not receive; and
        with the secret, as a payer."""
        alone = self.credentials["a token and a Payment's secret that is none"]
        for owner in OWNERS:
            ids = {"paymentId": self.world.others(row, owner)["paymentId"]}
            cell = f"{row.name} with the token alone and paymentId of {owner}"
            seen, faults = self.cell(cell, row, alone, MISSING, CROWDED, ids=ids)
            yield from faults
            never = self.send(row, alone, CROWDED, ids=self.world.others(row, "nobody"))
            if _same(seen) != _same(never):
                yield Fault(cell, MISSING, f"not as if it never was: {seen.body!r}")
        out = self.world.own.payments["out"]
        headers = self.world.own.both(out, self.world.own.buyers)
        payer = attrs.evolve(alone, headers=lambda world, row: headers)
        cell = f"{row.name} as its payer"
        ids = {"paymentId": out["id"]}
        yield from self.cell(cell, row, payer, Expected(200), CROWDED, ids=ids)[1]

    def by_product(self, row: Row) -> Iterator[Fault]:
        """Each product that the row needs taken away, and everything that it does not need."""
        place = self.place(row)
        holders = [self.right(row)]
        if row.caller in ("key", "bearer key") and not row.standard:
            holders.append(self.credentials["a restricted key with everything"])
        for off in [frozenset({one}) for one in sorted(row.products)] + [PRODUCTS - row.products]:
            for credential in holders:
                wanted = expected(row, credential.facts, place, off)
                cell = f"{row.name} with {credential.name} without {', '.join(sorted(off))}"
                yield from self.cell(cell, row, credential, wanted, place, off=off)[1]

    def taken_away_meanwhile(self, row: Row) -> Iterator[Fault]:
        """What is taken away between a call's checks and its commit stops it."""
        world, place = self.world, self.place(row)
        tenants, own = world.service.tenants, world.own
        deeds: dict[str, tuple[Callable[[], object], Expected]] = {}
        for product in sorted(row.products):
            left = sorted(PRODUCTS - {product})
            deeds[f"the product {product}"] = (
                lambda left=left: tenants.set_products(own.environment_id, left),  # type: ignore[misc]
                Expected(403, "entitlement_required"),
            )
        if row.caller == "operator":
            deeds["the session"] = (world.end_session, Expected(401, "unauthorized"))
        elif row.caller not in ("payer", "shop", "app id"):
            deeds["the key"] = (
                lambda: [tenants.revoke_key(own.environment_id, id) for id in self._key_ids(row)],
                Expected(401, "unauthorized"),
            )
        for name, (deed, wanted) in deeds.items():
            cell = f"{row.name} while {name} is taken away"
            world.storage.rewind(self.marks[place])
            before: list[Mark] = []

            def meanwhile(deed: Callable[[], object] = deed, before: list[Mark] = before) -> None:
                deed()
                before.append(world.storage.mark())

            world.storage.meanwhile = meanwhile
            seen = self.request(row, self.right(row), place)
            if not before:
                yield Fault(cell, wanted, f"nothing was committed: {seen.body!r}")
                continue
            yield from self._judged(cell, row, seen, wanted, before[0])

    def _key_ids(self, row: Row) -> list[str]:
        """The key that the row's right credential rests on; of publishable ones there are more."""
        own = self.world.own
        if row.caller != "sdk key":
            return [own.key.id]
        environment = self.world.service.tenants.get_environment(own.environment_id)
        return [key.id for key in environment.keys if key.kind == "publishable"]

    def replayed(self, row: Row) -> Iterator[Fault]:
        """Nobody gets a stored answer who could not have it made now."""
        place, credential = self.place(row), self.right(row)
        tenants, environment_id = self.world.service.tenants, self.world.own.environment_id
        for product in sorted(row.products):
            first = self.send(row, credential, place)
            cell = f"{row.name} replayed without {product}"
            wanted = Expected(403, "entitlement_required")
            if (first.status, first.headers.get("idempotent-replayed")) != (row.ok, None):
                yield Fault(cell, wanted, f"the first answer is {first.body!r}")
            again = self.request(row, credential, place)
            reported = (again.status, again.body, again.headers.get("idempotent-replayed"))
            if reported != (first.status, first.body, "true"):
                yield Fault(cell, Expected(row.ok), f"no replay: {again.body!r}")
            tenants.set_products(environment_id, sorted(PRODUCTS - {product}))
            mark = self.world.storage.mark()
            yield from self._judged(cell, row, self.request(row, credential, place), wanted, mark)

    def under_one_key(self, row: Row) -> Iterator[Fault]:
        """Each id of the path changed by itself, and all else repeated under one key."""
        place, credential, own = self.place(row), self.right(row), self.world.ids(row)
        names = [name for name in own if f"{{{name}}}" in row.path]
        for name in names:
            self.world.storage.rewind(self.marks[place])
            first = self.request(row, credential, place)
            if first.status != row.ok:
                yield Fault(row.name, Expected(row.ok), f"the first answer is {first.body!r}")
                continue
            changed = {**own, name: self.world.others(row, "nobody")[name]}
            again = self.request(row, credential, place, ids=changed)
            if again.status < 400 or again.headers.get("idempotent-replayed") is not None:
                cell = f"{row.name} under one key with another {name}"
                yield Fault(cell, Expected(409, "idempotency_conflict"), f"{again.body!r}")

    def repeated(self, row: Row) -> Iterator[Fault]:
        """Nobody else gets a stored answer, whatever key they send."""
        place = self.place(row)
        self.world.storage.rewind(self.marks[place])
        first = self.request(row, self.right(row), place)
        if first.status != row.ok:
            yield Fault(row.name, Expected(row.ok), f"the first answer is {first.body!r}")
        after = self.world.storage.mark()
        for credential in self.credentials.values():
            wanted = expected(row, credential.facts, place)
            of_the_same = (credential.facts.tenant, credential.facts.account) == ("own", "own")
            if wanted.status == row.ok and (of_the_same or row.caller == "shop"):
                continue  # it is the same principal's, who may read it
            self.world.storage.rewind(after)
            seen = self.request(row, credential, place)
            # A redirect has no body; where it leads, others may be led too.
            is_same = seen.body == first.body != b""
            if "idempotent-replayed" in seen.headers or is_same:
                cell = f"{row.name} repeated with {credential.name}"
                yield Fault(cell, wanted, f"got another's answer: {seen.body!r}")

    # One cell.

    def cell(
        self,
        name: str,
        row: Row,
        credential: Credential,
        wanted: Expected,
        place: Place,
        *,
        ids: Mapping[str, str] | None = None,
        off: frozenset[str] = frozenset(),
    ) -> tuple[Seen, list[Fault]]:
        """The answer to one call from the place's beginning, and what is wrong with it."""
        self.world.storage.rewind(self.marks[place])
        if off:
            environment_id = self.world.own.environment_id
            self.world.service.tenants.set_products(environment_id, sorted(PRODUCTS - off))
        mark = self.world.storage.mark()
        seen = self.request(row, credential, place, ids)
        faults = list(self._judged(name, row, seen, wanted, mark))
        if seen.status == 200 and not faults:
            faults += self._told(name, row, seen, credential, wanted, off)
        return seen, faults

    def send(self, row: Row, credential: Credential, place: Place, **more: Any) -> Seen:
        """One call from the place's beginning."""
        self.world.storage.rewind(self.marks[place])
        return self.request(row, credential, place, **more)

    def request(
        self,
        row: Row,
        credential: Credential,
        place: Place,
        ids: Mapping[str, str] | None = None,
    ) -> Seen:
        """One call from where the world is now."""
        world = self.world
        target = filled(row.path, ids or world.ids(row))
        body = world.body(row)
        query = world.query(row)
        if credential.facts.leak == "query":
            query += f"&key={credential.leaked}"
        target += f"?{query.removeprefix('&')}" if query else ""
        if credential.facts.leak == "body" and row.writes:
            body = {**(body or {}), "unheard": credential.leaked}
        headers = open_page(credential.headers(world, row))
        if row.writes and row.path.startswith(("/dashboard/", "/pay/")):
            path = target.partition("?")[0]
            form = world.fill_form(path, credential.session_cookie(headers), body or {})
            return world.wires[place.mode].call(row.method, target, headers, form=form)
        if row.writes:
            headers["Idempotency-Key"] = "cell"
        return world.wires[place.mode].call(row.method, target, headers, body)

    def _judged(
        self, cell: str, row: Row, seen: Seen, wanted: Expected, mark: Mark
    ) -> Iterator[Fault]:
        got = (seen.status, _code(seen))
        if wanted.status == 0:
            if seen.status in (401, 403, 404) or seen.status >= 500:
                yield Fault(cell, wanted, f"refused as {got}")
        elif got != (wanted.status, wanted.code):
            yield Fault(cell, wanted, f"answered {got} where {wanted} was right")
        challenge = (seen.headers.get("www-authenticate") or "").partition(" ")[0] or None
        if challenge != (row.challenge if seen.status == 401 else None):
            yield Fault(cell, wanted, f"the challenge is {challenge}")
        if wanted.is_refused:
            changed = self.world.storage.changed_since(mark)
            if row.entered and wanted.code == row.code:
                changed = {one for one in changed if not one.startswith("audit_entries/")}
            if changed:
                yield Fault(cell, wanted, f"changed {sorted(changed)}")
        elif wanted.status and any(id in seen.body for id in self._foreign):
            yield Fault(cell, wanted, "shows what is another environment's")

    def _told(
        self,
        cell: str,
        row: Row,
        seen: Seen,
        credential: Credential,
        wanted: Expected,
        off: frozenset[str],
    ) -> Iterator[Fault]:
        """What an answer says about its caller's rights, and what it shows a client of others."""
        facts = credential.facts
        if row.caller == "session token" or row.path == "/v2/client/me":
            right = sorted(permitted(facts.permissions, off))
            if (reported := sorted(seen.json["permissions"])) != right:
                yield Fault(cell, wanted, f"told {reported} where {right} was right")
        if row.path == "/v2/partners/config" and facts.tenant == "own":
            kind = "restricted" if facts.restricted else "standard"
            if (named := seen.json["credentialType"]) != kind:
                yield Fault(cell, wanted, f"told {named}")
        if row.caller == "client" and (facts.tenant, facts.account) == ("own", "own"):
            text = seen.body.decode()
            if self.world.own.neighbours["optionId"] in text:
                yield Fault(cell, wanted, "shows another payer's option")

    def _without_the_stranger(self) -> Mark:
        """The same world before another app came."""
        mark, stranger = self.marks[CROWDED], self.world.stranger
        partition = stranger.environment_id
        rows = {
            place: {id: row for id, row in table.items() if id != stranger.app_id}
            for place, table in mark.rows.items()
            if place[0] != partition
        }
        uniques = {key: id for key, id in mark.uniques.items() if key[0] != partition}
        return attrs.evolve(mark, rows=rows, uniques=uniques)


@cache
def matrix() -> Matrix:
    """The one matrix of a run of the tests: cells leave it as it was."""
    return Matrix()


def owned(row: Row, owner: str, chosen: tuple[str, ...], count: int) -> Expected:
    """What a right credential is answered where the path names others' objects."""
    if row.caller == "payer" or row.second == "needed":
        if "paymentId" in chosen:  # whose secret was not sent
            return Expected(401, "unauthorized")
        return MISSING
    if row.caller == "shop":
        return Expected(403, "origin_not_allowed") if owner == "stranger" else MISSING
    if row.second == "may be":  # the secret that was sent is of another Payment
        return Expected(401, "unauthorized")
    if row.caller == "nobody" and owner == "stranger":
        return Expected(0)  # links are open to everybody who has one
    if row.is_absent and owner != "no shape":
        return Expected(row.ok, row.code)
    if owner == "neighbour" and count == 1 and row.caller != "client" and not row.names:
        return Expected(0)  # another object of the same environment
    return MISSING


def _only(ids: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: ids[name] for name in names}


def _code(seen: Seen) -> str | None:
    return seen.code if seen.status >= 400 else None


def _body(seen: Seen) -> bytes:
    """A body without its request's own number."""
    request_id = seen.headers["x-request-id"].encode()
    return seen.body.replace(request_id, b"")


def _same(seen: Seen) -> tuple[int, bytes, str]:
    headers = {name: value for name, value in seen.headers.items() if name != "x-request-id"}
    return seen.status, _body(seen), json.dumps(headers, sort_keys=True)
