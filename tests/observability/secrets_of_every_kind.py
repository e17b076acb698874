"""Secrets as the service, its operators and its databases make them, by the name of their kind."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Mapping
from urllib.parse import quote

import attrs
from hypothesis import strategies as st

from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import MODES, PREFIXES, new_secret
from payments_core.credentials.tokens import TOKEN_PREFIXES, Claims, Tokens
from payments_core.payments.links import Links
from payments_core.webhooks import signing

RING = KeyRing.parse(KeyRing.generate())
ID = "A-b_1" * 4 + "zZ09"


@attrs.frozen
class Secret:
    """A text that somebody logs, and the part of it that must not come out.

    `needs_room`: it is told by what is around it, and so not where a word goes on into it.
    """

    text: str
    hidden: str
    needs_room: bool = False


Entropy = Callable[[int], bytes]

random = st.binary(min_size=64, max_size=64).map(lambda data: lambda count: data[:count])
url_safe = st.text(string.ascii_letters + string.digits + "-_", min_size=32, max_size=44)
passwords = st.text(
    "".join(chr(code) for code in range(33, 127) if chr(code) not in "@"), min_size=12, max_size=60
)


def _key(entropy: Entropy, kind: str, mode: str) -> Secret:
    made = new_secret(kind, mode, entropy)  # type: ignore[arg-type]
    return Secret(made, made[len("sk_sandbox_") :])


def _token(prefix: str, expires_at: int) -> Secret:
    made = Tokens(RING).mint(prefix, Claims("env_" + ID, "ses_" + ID, "2026-09-09", expires_at))
    return Secret(made, made.removeprefix(prefix))


def _payment_secret(expires_at: int) -> Secret:
    claims = Claims("env_" + ID, "payment_" + ID, "2026-09-09", expires_at)
    made = Tokens(RING).payment_secret(claims)
    return Secret(made, made.partition("_secret_")[2])


def _link(entropy: Entropy, as_address: bool) -> Secret:
    links = Links(RING, entropy, "https://pay.example")
    link = links.mint("env_" + ID, "payment_" + ID, "sandbox")
    code = RING.open("payment link", "payment_" + ID, base64.b64decode(link.sealed_code)).decode()
    return Secret(f"https://pay.example/pay/{code}" if as_address else code, code, not as_address)


def _key_ring(entropy: Entropy) -> Secret:
    made = KeyRing.generate(entropy, "main2026")
    return Secret(made, made.partition(":")[2])


def _basic(user: str, password: str) -> Secret:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Secret(f"Basic {encoded}", encoded)


def _pem(data: bytes) -> Secret:
    body = base64.encodebytes(data).decode()
    made = f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----"
    return Secret(made, body.strip().split("\n")[0])


# What a text may hold that is glued to a secret must not make another secret out of it, so the
# databases' passwords are written as their URLs have them.
KINDS: Mapping[str, st.SearchStrategy[Secret]] = {
    "app secret": st.builds(_key, random, st.sampled_from(list(PREFIXES)), st.sampled_from(MODES)),
    **{
        kind: st.builds(_token, st.just(prefix), st.integers(0, 2**50))
        for kind, prefix in TOKEN_PREFIXES.items()
    },
    "Payment client secret": st.builds(_payment_secret, st.integers(0, 2**50)),
    "signing secret": random.map(signing.new_secret).map(
        lambda made: Secret(made, made.removeprefix("whsec_"))
    ),
    "link code": st.builds(_link, random, st.just(False)),
    "link": st.builds(_link, random, st.just(True)),
    "key ring": st.builds(_key_ring, random),
    "Basic": st.builds(_basic, url_safe, passwords),
    "Bearer": url_safe.map(lambda made: Secret(f"bearer  {made}", made)),
    "Digest": url_safe.map(lambda made: Secret(f"Authorization: Digest {made}", made)),
    "database": passwords.map(
        lambda made: Secret(f"postgresql://payments:{quote(made)}@db.example/payments", quote(made))
    ),
    "database, odd": passwords.map(
        lambda made: Secret(f"postgresql://payments:{made}@db.example:5432/payments", made)
    ),
    "database, two hosts": url_safe.map(
        lambda made: Secret(f"postgresql://u:{made}@a.example,b.example:5433/p", made)
    ),
    "libpq": url_safe.map(lambda made: Secret(f"host=db.example password={made} port=5432", made)),
    "libpq, quoted": url_safe.map(lambda made: Secret(f"password = '{made} x'", made)),
    "limiter": url_safe.map(lambda made: Secret(f"rediss://:{made}@redis.example:6380/0", made)),
    "no scheme": url_safe.map(lambda made: Secret(f"payments:{made}@db.example", made, True)),
    "node, user": url_safe.map(lambda made: Secret(f"https://user:{made}@node.example/", made)),
    "node, path": url_safe.map(lambda made: Secret(f"https://base.example/v3/{made}", made)),
    "node, short path": st.text(string.ascii_letters + string.digits, min_size=12, max_size=15)
    .filter(lambda made: not (made.isalpha() or made.isdigit()))
    .map(lambda made: Secret(f"https://base.example/v3/{made}", made)),
    "node, hex": st.text("0123456789abcdef", min_size=32, max_size=64).map(
        lambda made: Secret(f"wss://base.example/{made}/", made)
    ),
    "node, query": url_safe.map(lambda made: Secret(f"https://base.example/?k={made}", made)),
    "request line": url_safe.map(lambda made: Secret(f'"POST /v2/{made} HTTP/1.1" 200', made)),
    "header": url_safe.map(lambda made: Secret(f"{{'X-Api-Key': '{made}'}}", made)),
    "header of a Payment": url_safe.map(
        lambda made: Secret(f"('X-Service-Payment-Secret', '{made}')", made)
    ),
    "header in an environment": url_safe.map(
        lambda made: Secret(f"'HTTP_X_SERVICE_PAYMENT_SECRET': '{made}'", made)
    ),
    "key": url_safe.map(lambda made: Secret(f" key={made}", made)),
    "pass, quoted": url_safe.map(lambda made: Secret(f"user=me pass = '{made} x'", made)),
    "JSON": url_safe.map(lambda made: Secret(f'{{"access_token": "{made}"}}', made)),
    "PEM": st.binary(min_size=48, max_size=120).map(_pem),
    "PEM, escaped": st.binary(min_size=48, max_size=120)
    .map(_pem)
    .map(lambda one: Secret(repr(one.text), one.hidden)),
}
