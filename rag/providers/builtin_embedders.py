"""Embed without a key or a network: words by hashing, meaning by a small local model.

The lexical embedder compares words and word parts, in any script, and knows no synonyms. The meaning model, an
integration, is multilingual-e5-small in 4 bits. Its engine is C code without bounds checks. Therefore it runs in
separate processes, which are restarted when they die. One process embeds questions. The other embeds passages, at low
priority. No question waits behind a passage, and a passage which ends its process does not affect questions.
"""

from __future__ import annotations

import atexit
import functools
import logging
import math
import re
import signal
import subprocess
import threading
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rag.errors import InvalidInput, PackagesMissing, ProviderUnavailable
from rag.providers.local_engines import worker_for
from rag.sandbox.child_process import MalformedMessage, end_child, read_message, start_child, write_message
from rag.types import Embeddings, FloatMatrix

LEXICAL_DIMENSIONS = 1536
# Weights relative to 1 for a word (a character pair in scripts without spaces), chosen on XQuAD and JaQuAD: paragraph
# found among the first 5: en .97, de .97, es .97, tr .93, ar .93, it .92, zh .96, ja .85.
NGRAM_WEIGHT = 0.5
CHARACTER_WEIGHT = 0.3

# Scripts written without spaces (kana, Han, Thai): character pairs carry the meaning.
_DENSE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003134f"
DENSE = re.compile(f"[{_DENSE}]+")
WORD = re.compile(rf"[{_DENSE}]+|[^\W{_DENSE}]+")
# Korean particles are attached to words, so short pieces are compared.
HANGUL = re.compile(r"[\uac00-\ud7a3]")
# Accents in Latin, Greek and Cyrillic, vowel signs in Arabic and Hebrew: typed or omitted at will.
MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670\u0640]")


def _normalise(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", MARKS.sub("", unicodedata.normalize("NFKD", text.casefold())))


# Function words unrelated to the subject, all languages in a single set: a function word in any language is rarely a
# topic word in another. They are part of the vectors' meaning: another list would make a different embedder.
STOPWORDS = frozenset(_normalise(Path(__file__).with_name("stopwords.txt").read_text("utf-8")).split())


class LexicalEmbedder:
    """Embeds hashed words and character n-grams, with the same result on every machine; about 3,000 paragraphs a
    second.

    `default_threshold` is measured. The cosine of the answering paragraph is above 0.12 for 95 % of English, German,
    Spanish and Italian questions. For Turkish, Arabic, Chinese and Japanese questions, it is above 0.08.
    """

    id = f"builtin/lexical@{LEXICAL_DIMENSIONS}"
    provider = "builtin"
    model = "lexical"
    dimensions = LEXICAL_DIMENSIONS
    default_threshold = 0.12
    is_paid = False

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings in order: (texts, 1536) float32, each row with length 1. `purpose` makes no
        difference.

        Raises `InvalidInput` for a text with only spaces, because its vector has no direction.
        """
        vectors: FloatMatrix = np.empty((len(texts), LEXICAL_DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = _embed(text)
        return Embeddings(vectors=vectors)


def _embed(text: str) -> FloatMatrix:
    if not text.strip():
        raise InvalidInput("A text of only spaces cannot be prepared for the search.")
    words = WORD.findall(_normalise(text))
    counts = Counter(word for word in words if word not in STOPWORDS)
    if not counts:  # "to be or not to be", "***": better compared unchanged than not at all.
        counts = Counter(words or [text.strip()])
    features = [_features(word) for word in counts]
    repeats = [1.0 + math.log(count) for count in counts.values()]
    positions = np.concatenate([feature[0] for feature in features])
    weights = np.concatenate([feature[1] for feature in features])
    weights = weights * np.repeat(repeats, [len(feature[0]) for feature in features])
    vector = np.bincount(positions, weights, minlength=LEXICAL_DIMENSIONS)
    length = float(np.sqrt(vector @ vector))
    if length == 0.0:  # signs may cancel out, if only in theory
        vector[positions[0]], length = 1.0, 1.0
    return (vector / length).astype(np.float32)


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the positions and signed weights of a word and its parts in the vector.

    Weights are normalised, because a long word would otherwise outweigh the rest.
    """
    if DENSE.match(word):
        parts = [word[i : i + 2] for i in range(len(word) - 1)]
        weighted = [*((pair, 1.0) for pair in parts), *((character, CHARACTER_WEIGHT) for character in word)]
    else:
        marked, size = f"<{word}>", 2 if HANGUL.search(word) else 4
        parts = [marked[i : i + size] for i in range(len(marked) - size + 1)]
        weight = NGRAM_WEIGHT if len(parts) <= 4 else NGRAM_WEIGHT * 2 / math.sqrt(len(parts))
        weighted = [(word, 1.0), *((part, weight) for part in parts)]
    hashes = np.array([zlib.crc32(part.encode("utf-8", "surrogatepass")) for part, _ in weighted], dtype=np.int64)
    signs = np.where(hashes >> 31 & 1, 1.0, -1.0)  # Collisions cancel out on average instead of adding up.
    return hashes % LEXICAL_DIMENSIONS, np.array([weight for _, weight in weighted]) * signs


log = logging.getLogger("rag.meaning")

MEANING_DIMENSIONS = 384
#: How many characters of a text are read; the model takes 512 tokens, which are fewer in every language.
MAXIMUM_CHARACTERS = 4_000
#: A process ended by a text is restarted once; if it ends again, the text is the cause.
TRIES = 2
#: How often a process ended from outside is restarted for a text.
OTHER_ENDS = 5
#: Longest wait for a question and for a passage, in seconds: a passage gives way to everything else.
QUESTION_SECONDS = 10.0
PASSAGE_SECONDS = 600.0
#: Processor time for a text; a passage part takes 0.05 to 0.6 s.
PROCESSOR_SECONDS = 20.0
MEMORY_MB = 1024
#: Signals which show that a process ended because of its input, not from outside.
OWN_ENDS = frozenset(
    -getattr(signal, name)
    for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGPROF", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)

Purpose = Literal["document", "query"]


class TextEndsEngine(InvalidInput):
    """The built-in embedding model cannot read this text."""


class MeaningEmbedder:
    """Embeds texts by meaning, across languages. Thread-safe, one text at a time.

    Its cosines are in a narrow range: 0.76 to 0.83 for unrelated passages, 0.84 to 0.92 for answers.
    """

    id = f"builtin/multilingual-e5-small-q4@{MEANING_DIMENSIONS}"
    provider = "builtin"
    model = "multilingual-e5-small-q4"
    dimensions = MEANING_DIMENSIONS
    default_threshold = 0.84
    is_paid = False

    def __init__(self, *, gives_way: bool = True) -> None:
        """If `gives_way` is true, passages are embedded at low priority. Use `False` if nothing else runs."""
        self._questions = Engine("query", is_background=False)
        self._passages = Engine("passage", is_background=gives_way)

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Embeddings:
        """Return the texts' embeddings in order: (texts, 384) float32, each row with length 1.

        Raises `InvalidInput` for a text with only spaces, and `TextEndsEngine` for a text which ended its process
        twice. Raises `ProviderUnavailable` if the engine cannot be started or does not answer in time.
        """
        engine = self._questions if purpose == "query" else self._passages
        vectors: FloatMatrix = np.empty((len(texts), MEANING_DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = engine.embed(text)
        return Embeddings(vectors=vectors)

    def warm_up(self) -> None:
        """Start the process for questions in advance, to save the first question the waiting time."""
        with suppress(ProviderUnavailable):
            self._questions.start()

    def rest(self, *, idle_seconds: float = 0.0) -> None:
        """End the process for passages until there are new passages. A text in progress is abandoned.

        With `idle_seconds`, the process is only ended if idle for this long.
        """
        if not idle_seconds or self._passages.idle_seconds >= idle_seconds:
            self._passages.close()

    def close(self) -> None:
        """End both processes. They start again when needed."""
        self._questions.close()
        self._passages.close()


class Engine:
    """A process with the model. The process starts on first use, and again after it died. Thread-safe."""

    def __init__(self, task: Literal["query", "passage"], *, is_background: bool) -> None:
        self._is_background = is_background
        self._seconds = PASSAGE_SECONDS if task == "passage" else QUESTION_SECONDS
        self._task = task
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = False
        self._used_at = time.monotonic()
        atexit.register(self.close)

    @property
    def process_id(self) -> int | None:
        """Return the running process's id, if any."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def idle_seconds(self) -> float:
        """Return how long the process has been idle, or 0 while it works."""
        return 0.0 if self._lock.locked() else time.monotonic() - self._used_at

    def start(self) -> None:
        """Start the process if necessary. Raises `ProviderUnavailable` with the reason if it does not start."""
        with self._lock:
            self._is_closing = False
            self._started()

    def embed(self, text: str) -> FloatMatrix:
        """Return a text's vector. Raises the errors from `MeaningEmbedder.embed`."""
        normalised = prepared(text)
        if not normalised.strip():
            raise InvalidInput("A text of only spaces cannot be prepared for the search.")
        blob = normalised.encode()
        with self._lock:
            self._is_closing = False
            own_ends = other_ends = 0
            while True:
                vector, code = self._ask(self._started(), blob)
                self._used_at = time.monotonic()
                if vector is not None:
                    return vector
                if code in OWN_ENDS:
                    own_ends += 1
                    log.warning("The engine of meaning ended by signal %d; it starts again", -code)
                    if own_ends >= TRIES:
                        raise TextEndsEngine
                else:
                    other_ends += 1
                    if self._is_closing or other_ends > OTHER_ENDS:
                        raise ProviderUnavailable("The engine of meaning was ended. It starts again when it is needed.")

    def close(self) -> None:
        """End the process. A text in progress is abandoned."""
        self._is_closing = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        worker = worker_for("meaning")
        if worker is None:
            raise ProviderUnavailable(str(PackagesMissing()))
        process = self._process = start_child(
            "-m",
            worker,
            str(MEMORY_MB),
            "background" if self._is_background else "foreground",
        )
        try:
            with _ended_after(process, 60.0):
                message = read_message(process.stdout, 65_536)  # type: ignore[arg-type]
        except (OSError, MalformedMessage):
            message = None
        if message is None or message.kind != "ready":
            self._end()
            reason = message.values.get("reason") if message is not None else None
            raise ProviderUnavailable(str(reason or "The engine of meaning cannot be started."))
        return process

    def _ask(self, process: subprocess.Popen[bytes], blob: bytes) -> tuple[FloatMatrix | None, int]:
        """Let a process compute the vector of a text.

        Returns the vector and 0 or, if the process has ended, `None` and the exit status.
        """
        seconds = {"seconds": PROCESSOR_SECONDS}
        timer = _ended_after(process, self._seconds)
        try:
            with timer:
                write_message(process.stdin, self._task, seconds, blob)  # type: ignore[arg-type]
                reply = read_message(process.stdout, 65_536)  # type: ignore[arg-type]
        except (OSError, ValueError, MalformedMessage):
            reply = None
        if reply is not None and reply.kind == "result" and len(reply.blob) == MEANING_DIMENSIONS * 4:
            return np.frombuffer(reply.blob, dtype="<f4").astype(np.float32), 0
        process.kill()
        code = process.wait()
        self._end()
        if timer.is_late:
            raise ProviderUnavailable("The engine of meaning gave no answer in time.")
        return None, code

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_child(process)


class _ended_after:
    """A context manager which ends a process if the block takes too long, and then sets `is_late`."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.is_late = False
        self._process = process
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.is_late = True
        self._process.kill()


def prepared(text: str) -> str:
    """Prepare a text for the engine: NFKC, without NUL characters and lone surrogates, and not too long.

    The engine expands a character to up to eighteen, but has room for only four per byte. Every character in NFKC fits
    (all were checked).
    """
    cut = text[:MAXIMUM_CHARACTERS].replace("\0", " ").encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFKC", cut)[:MAXIMUM_CHARACTERS]


def is_installed() -> bool:
    """Whether the built-in embedding model is installed. Its package has wheels for Linux and for macOS on arm64."""
    return worker_for("meaning") is not None


@functools.cache
def shared_embedder() -> MeaningEmbedder:
    """Return this process's embedder, with at most two processes: for questions and for passages."""
    return MeaningEmbedder()
