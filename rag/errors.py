"""All errors, as a tree.

RagError
├── SettingsError            a setting is missing or unusable
├── PackagesMissing          an integration lacks its packages
├── DatabaseUnavailable      Postgres does not answer, or lacks a requirement
├── Saturated                too many concurrent questions, even to wait
├── StorageFull              an original cannot be stored
├── NotAllowed               the person's role does not include this
│   ├── ScopeMissing         nor the API key's scopes
│   ├── BudgetSpent          the month's budget is spent
│   ├── TenantSuspended      the tenant's work has to wait
│   ├── SignInAgain          a sensitive act, long after the last sign-in
│   ├── OtherHost
│   └── OtherSite
├── AlreadyThere             the name or address is taken
├── TextChanged              someone else saved the page's text meanwhile
├── NotFound                 not there, or not this tenant's: the two look alike from outside
│   └── RouteUnknown
├── InvalidInput             the caller's input cannot be used
│   ├── QuestionEmpty
│   ├── QuestionTooLong
│   ├── WeakPassword
│   ├── PlaceTaken
│   └── RequestInvalid       an invalid API request; below, why it is unreadable
│       ├── BodyUnreadable
│       ├── PartMissing
│       ├── BodyTooLarge
│       ├── MediaTypeUnsupported
│       └── MethodNotAllowed
├── AccessError              signing in did not work
│   ├── WrongPassword
│   ├── TooManyAttempts
│   ├── LinkExpired
│   ├── SignedOut
│   ├── KeyRejected
│   └── TooManyRequests
├── DocumentError            a file cannot be processed
│   ├── NotAPdf
│   ├── FileKindUnknown
│   ├── FileNotAsNamed
│   ├── FileDamaged
│   │   └── PdfDamaged
│   ├── FileEmpty
│   ├── FileTooLarge
│   ├── TooManyPages
│   ├── FileProtected
│   │   └── PasswordNeeded   a password opens the file
│   │       └── PasswordWrong
│   ├── PdfHasNoPages
│   ├── NoTextInPdf
│   ├── ReadingTookTooLong
│   ├── WorkKeepsDying
│   ├── StepNotPossible
│   └── DocumentAlreadyStored
└── ProviderError            a model or reranker did not do its part
    ├── ProviderKeyRejected
    ├── ProviderQuotaExhausted
    ├── ProviderUnavailable
    ├── ProviderStreamCut
    │   └── ProviderStreamEmpty
    ├── ProviderRefused
    └── ProviderAnswerInvalid
        ├── ProviderAnswerCut
        └── VectorUnusable

A class's docstring is the sentence its reader sees, unless an error is raised with a better sentence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rag.language import translated


class RagError(Exception):
    """Something went wrong. Try again; if it happens again, tell your administrator."""

    #: HTTP status for the API.
    status: ClassVar[int] = 500

    def __init__(self, message: str | None = None, **details: Any) -> None:
        #: Facts for programs, such as the stored document's id.
        self.details = details
        super().__init__(message or type(self).__doc__ or type(self).__name__)

    @property
    def message(self) -> str:
        """The message in the reader's language; `str()` is the English message, for the log."""
        return translated(str(self))

    @property
    def code(self) -> str:
        """The class name in snake_case, stable for API callers."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


class SettingsError(RagError):
    """A setting cannot be used."""

    status = 503


class PackagesMissing(RagError):
    """Packages for this are not installed. The operator adds them: “pip install -r requirements-integrations.txt”."""

    status = 503


class DatabaseUnavailable(RagError):
    """The database does not answer. Check that it runs and that DATABASE_URL is right."""

    status = 503


class Saturated(RagError):
    """Too many questions are being answered at this moment. Ask again in a few seconds."""

    status = 503


class StorageFull(RagError):
    """The disk for files is full, so nothing was stored. Free some space there and try again."""

    status = 507


class NotAllowed(RagError):
    """Your role does not include this. Ask an administrator."""

    status = 403


class ScopeMissing(NotAllowed):
    """This API key may not do this. An administrator can make a key that has this permission."""


class BudgetSpent(NotAllowed):
    """The budget for this month is spent. Until next month, search works without paid models."""


class TenantSuspended(NotAllowed):
    """This company is suspended. Nothing is processed until the operator of this installation ends the suspension."""


class SignInAgain(NotAllowed):
    """You signed in a while ago. Confirm that it is you at /account/confirm, then do this again."""


class OtherSite(NotAllowed):
    """This request came from another site. If that site is yours, set RAG_PUBLIC_URL to its address."""


class OtherHost(NotAllowed):
    """The server has a different host name. Use the address in RAG_PUBLIC_URL. Proxies must send this name as Host."""

    status = 421


class AlreadyThere(RagError):
    """This name is already in use. Choose another name."""

    status = 409


class TextChanged(RagError):
    """The text of this page was changed in the meantime, so your text was not saved. Compare both, then save again."""

    status = 409


class NotFound(RagError):
    """This does not exist. It may have been deleted."""

    status = 404


class RouteUnknown(NotFound):
    """There is nothing at this address. The API is described at /api/docs."""


class InvalidInput(RagError):
    """This input cannot be used."""

    status = 422


class PlaceTaken(InvalidInput):
    """This cannot be restored. Something else has taken its place, or the item that it belonged to is gone."""


class QuestionEmpty(InvalidInput):
    """Please type a question."""


class QuestionTooLong(InvalidInput):
    """This question is too long. Write at most 4,000 characters."""


class WeakPassword(InvalidInput):
    """Choose a password of at least 10 characters that is not easy to guess."""


class RequestInvalid(InvalidInput):
    """This request does not have the form that is described at /api/docs."""


class BodyUnreadable(RequestInvalid):
    """The body of this request cannot be read: it has to be JSON in UTF-8."""

    status = 400


class PartMissing(RequestInvalid):
    """A required part of this request is missing."""

    status = 400


class BodyTooLarge(RequestInvalid):
    """The body of this request is larger than the limit."""

    status = 413


class MediaTypeUnsupported(RequestInvalid):
    """This address does not take a body of this kind. Send JSON with application/json."""

    status = 415


class MethodNotAllowed(RequestInvalid):
    """This address does not accept this method. The header Allow lists the methods that it accepts."""

    status = 405


class AccessError(RagError):
    """Signing in did not work."""

    status = 401


class WrongPassword(AccessError):
    """The e-mail address or the password is not right."""


class TooManyAttempts(AccessError):
    """Too many wrong passwords. Wait a moment and try again."""

    status = 429


class LinkExpired(AccessError):
    """This link has been used or has expired. Ask for a new one."""


class SignedOut(AccessError):
    """Sign in first, or send an API key as Authorization: Bearer."""


class KeyRejected(AccessError):
    """This API key is not valid: it is unknown, has expired or was revoked."""


class TooManyRequests(AccessError):
    """Too many requests at once. Wait as long as Retry-After says and try again."""

    status = 429


class DocumentError(RagError):
    """This file cannot be processed."""

    status = 422


class NotAPdf(DocumentError):
    """This file is not a PDF, despite its name. Export it as a PDF and upload it again."""


class FileKindUnknown(DocumentError):
    """Files of this kind cannot be read. Upload a PDF, a document, spreadsheet or presentation, HTML or plain text."""


class FileNotAsNamed(DocumentError):
    """The name of this file does not match its content. Correct the ending of the name and upload the file again."""


class FileDamaged(DocumentError):
    """This file is damaged and cannot be read. Save it again in the program it comes from and upload the new file."""


class FileEmpty(DocumentError):
    """This file is empty. Check it on your computer and upload it again."""


class FileTooLarge(DocumentError):
    """This file is larger than the limit. Split it, or ask your administrator to raise the limit."""

    status = 413


class TooManyPages(DocumentError):
    """This file is longer than the limit. Split it and upload the parts."""


class FileProtected(DocumentError):
    """This file is protected by a password. Save it without a password and upload the new file."""


class PasswordNeeded(FileProtected):
    """This PDF is protected by a password. Enter the password to continue. It is used only once and is not stored."""


class PasswordWrong(PasswordNeeded):
    """This password does not open the PDF. Try again. The password is used only once and is not stored."""


class PdfDamaged(FileDamaged):
    """This PDF is damaged and cannot be read. Export it again from its source and upload the new file."""


class PdfHasNoPages(DocumentError):
    """This PDF has no pages. Export it again from its source and upload the new file."""


class NoTextInPdf(DocumentError):
    """This PDF contains no text and seems to be scanned. It needs text recognition (OCR) first."""


class ReadingTookTooLong(DocumentError):
    """Reading this file took too much time or memory. Save the file again in the program that made it."""


class WorkKeepsDying(DocumentError):
    """Reading this file failed several times, so it was given up. Export the file again and upload the new file."""


class StepNotPossible(DocumentError):
    """This step is not possible while the document has its present status."""

    status = 409


class DocumentAlreadyStored(DocumentError):
    """This document is already stored."""

    status = 409


class ProviderError(RagError):
    """A provider of language models did not answer as expected. Try again in a moment."""

    status = 502


class ProviderKeyRejected(ProviderError):
    """The provider rejected the API key. A valid key has to be set on the page Set-up."""


class ProviderQuotaExhausted(ProviderError):
    """The credit or the request limit at the provider is used up. Try later, or raise the limit there."""


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached at the moment. Try again in a moment."""


class ProviderStreamCut(ProviderError):
    """The provider ended the answer before it was complete. The text received so far is kept."""


class ProviderStreamEmpty(ProviderStreamCut):
    """The provider ended the answer before its first word. Try again in a moment."""


class ProviderRefused(ProviderError):
    """The provider declined to answer this question."""


class ProviderAnswerInvalid(ProviderError):
    """The provider sent an answer that cannot be read. Try again in a moment."""


class VectorUnusable(ProviderAnswerInvalid):
    """The search model sent no usable result for one of the texts: some values are not numbers."""


class ProviderAnswerCut(ProviderAnswerInvalid):
    """The model's answer was cut at its length limit, so it cannot be used."""
