"""Bodies: stored exactly, with any content, of any release."""

from __future__ import annotations

from payments_core.conformance.storage.harness import (
    PARTITION,
    Harness,
    fetch,
    fetch_all_pages,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.records import Letter, Mark, NewerLetter, Note
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.storage.documents import MAX_BODY_BYTES
from payments_core.storage.port import StorageError, Transaction

AWKWARD = (
    'it\'s "quoted", back\\slashed; -- DROP TABLE suite_letters',
    "new\nline, tab\t, null \0, bell \a, line separator \u2028",
    "é e\u0301 ß Ω 漢字 😀 \U0010ffff \ufeff",
    '{"json": [1, 2.0, null]}',
    "%s ? :name $1 %(x)s {}",
    "",
    " padded ",
)


class DocumentChecks(Harness):
    """A record is read back as it was written."""

    def test_texts_survive(self) -> None:
        storage = self.open_handle()
        self.insert(
            storage,
            *(Letter(id=f"l{place}", text=text) for place, text in enumerate(AWKWARD)),
        )
        for place, text in enumerate(AWKWARD):
            assert fetch_existing(storage, Letter, f"l{place}").text == text

    def test_texts_survive_in_ids_and_columns(self) -> None:
        storage = self.open_handle()
        texts = [text for text in AWKWARD if text and "\0" not in text]
        self.insert(storage, *(Note(id=text, tag=text, code=text) for text in texts))
        for text in texts:
            note = fetch_existing(storage, Note, text)
            assert (note.tag, note.code) == (text, text)
            found = fetch_all_pages(storage, Note, "by_tag", (text,))
            assert [note.id for note in found] == [text]

    def test_amounts_of_78_digits_survive(self) -> None:
        storage = self.open_handle()
        amounts = [10**78 - 1, 2**256 - 1, 2**63, 2**53 + 1, 0, -(10**77)]
        self.insert(
            storage,
            *(Letter(id=f"l{n}", amount_atomic=Atomic(a)) for n, a in enumerate(amounts)),
        )
        for number, amount in enumerate(amounts):
            found = fetch_existing(storage, Letter, f"l{number}").amount_atomic
            assert (found, type(found)) == (amount, Atomic)

    def test_integers_of_64_bits_survive_in_columns(self) -> None:
        storage = self.open_handle()
        sizes = [2**63 - 1, -(2**63), 2**53 + 1, 0]
        self.insert(storage, *(Note(id=f"n{s}", size=s, rank=s) for s in sizes))
        page = storage.read(PARTITION, lambda snapshot: snapshot.find(Note, "by_rank", ("one",)))
        assert [note.size for note in page.records] == sorted(sizes)

    def test_a_large_body_survives(self) -> None:
        storage = self.open_handle()
        text = "é" * (MAX_BODY_BYTES // 2 - 1_000)
        self.insert(storage, Letter(id="l", text=text))
        assert fetch_existing(storage, Letter, "l").text == text

    def test_what_no_storage_could_keep_is_refused_in_the_work(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n"))
        wrong = (
            Letter(id="l", text="x" * (MAX_BODY_BYTES + 1)),
            Note(id="a\0b"),
            Note(id="x" * 501),
            Note(id="m", code="x" * 501),
            Note(id="m", code="x\0"),
            Note(id="m", size=2**63),
            Note(id="m", size="7"),  # type: ignore[arg-type]
            Note(id="m", tag=7),  # type: ignore[arg-type]
            Note(id="m", size=True),
            Note(id="m", rank=None),  # type: ignore[arg-type]
        )
        for record in wrong:

            def insert(tx: Transaction, record: Letter | Note = record) -> None:
                tx.insert(Mark(id="first"))
                tx.insert(record)

            def replace(tx: Transaction, record: Letter | Note = record) -> None:
                tx.insert(Mark(id="first"))
                version = lock_existing(tx, Note, "n").version
                tx.replace(evolve(record, id="n", version=version))

            self.require_error(storage, ValueError, insert)
            if isinstance(record, Note) and record.id == "m":
                self.require_error(storage, ValueError, replace)
            assert fetch(storage, Mark, "first") is None

    def test_an_older_document_is_upgraded_as_it_is_read(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Letter(id="l", text="hello"))
        assert fetch_existing(storage, NewerLetter, "l").seal == "upgraded hello"
        self.write(storage, lambda tx: tx.replace(lock_existing(tx, NewerLetter, "l")))
        letter = fetch_existing(storage, NewerLetter, "l")
        assert (letter.schema, letter.version) == (2, 2)

    def test_an_older_release_keeps_the_fields_that_it_does_not_know(self) -> None:
        storage = self.open_handle()
        details = {"a": [1, "two", None, {"deep": True}], "big": "9" * 78}
        self.insert(storage, NewerLetter(id="l", text="t", seal="wax", details=details))

        def work(tx: Transaction) -> None:
            tx.replace(evolve(lock_existing(tx, Letter, "l"), text="changed"))

        self.write(storage, work)
        letter = fetch_existing(storage, NewerLetter, "l")
        assert (letter.text, letter.seal, letter.details) == ("changed", "wax", details)
        assert (letter.schema, letter.version) == (2, 2)

    def test_a_value_that_is_no_json_is_refused(self) -> None:
        storage = self.open_handle()
        letter = NewerLetter(id="l", seal="s", details={"x": object()})
        try:
            storage.transact(PARTITION, lambda tx: tx.insert(letter))
        except (TypeError, ValueError, StorageError):
            assert fetch(storage, NewerLetter, "l") is None
            return
        raise AssertionError("a value that is not JSON must be refused")
