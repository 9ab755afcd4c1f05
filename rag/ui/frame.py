"""Build the frame's HTML and scripts: sign out, notice a session's end, follow answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from urllib.parse import urlsplit
from uuid import UUID

import streamlit as st

from rag.language import _
from rag.settings import Settings
from rag.ui.sources import CHIPS
from rag.ui.sources import LOOK as LOOK_OF_CHIPS
from rag.ui.text import ANSWER_TAGS


def reader_address(settings: Settings) -> str:
    """Return the address for shared links: the public address, else the address in the browser."""
    seen = urlsplit(st.context.url or "")
    came_by = f"{seen.scheme}://{seen.netloc}" if seen.netloc else settings.own_address
    return settings.public_url.rstrip("/") or came_by


#: Runs in the browser, once per page load. If a session ends elsewhere (signed out in another tab, account
#: disabled), the page notices within 15 s. Streamlit has no live region, so `chat_now` becomes one for screen readers.
KEEP_SIGNED_IN = """
<script>
if (!window.hrAssistantFrame) {
  window.hrAssistantFrame = true;
  const signIn = () =>
    location.assign("/login?ended=1&next=" + encodeURIComponent(location.pathname + location.search));
  const check = async () => {
    try {
      const answer = await fetch("/api/me", { headers: { accept: "application/json" }, cache: "no-store" });
      if (answer.status === 401) signIn();
    } catch { dispatchEvent(new Event("hr-assistant-lost")); }
  };
  setInterval(check, 15000);
  addEventListener("focus", check);
  const announce = () => {
    const now = document.querySelector(".st-key-chat_now");
    if (now && now.getAttribute("role") !== "log") {
      now.setAttribute("role", "log");
      now.setAttribute("aria-live", "polite");
      now.setAttribute("aria-label", LATEST);
    }
  };
  new MutationObserver(announce).observe(document.body, { childList: true, subtree: true });
  announce();
}
</script>
"""

#: Runs in the browser, once per page load. Only an answer's tags are accepted, without attributes, although the
#: server sends nothing else. The style is copied from the question above, so nothing moves when the stored answer
#: replaces the growing one.
FOLLOW_ANSWERS = """
<script>
if (!window.hrAssistantAnswers) {
  window.hrAssistantAnswers = true;
  const tags = new Set(TAGS);
  const taken = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
    const name = node.nodeName.toLowerCase();
    const copy = tags.has(name) ? document.createElement(name) : document.createDocumentFragment();
    const start = name === "ol" ? node.getAttribute("start") : null;
    if (start && /^[0-9]+$/.test(start)) copy.start = Number(start);
    for (const child of node.childNodes) copy.append(taken(child));
    return copy;
  };
  const parsed = (html) => taken(new DOMParser().parseFromString(html, "text/html").body);
  const follow = (place) => {
    place.dataset.followed = "yes";
    const like = document.querySelector('[data-testid="stChatMessage"] [data-testid="stMarkdownContainer"]');
    if (like) place.className = like.className;
    const source = new EventSource("/answers/" + encodeURIComponent(place.dataset.answer) + "/text");
    let growing = [];
    source.onopen = () => { place.replaceChildren(); growing = []; };
    source.onmessage = (event) => {
      if (!place.isConnected) return source.close();
      const news = JSON.parse(event.data);
      if (news.again) place.replaceChildren();
      else for (const node of growing) node.remove();
      place.append(parsed(news.finished));
      const last = parsed(news.growing);
      growing = [...last.childNodes];
      place.append(last);
    };
    source.addEventListener("end", () => source.close());
  };
  const look = () => {
    for (const place of document.querySelectorAll("[data-answer]:not([data-followed])")) follow(place);
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
</script>
""".replace("TAGS", json.dumps(sorted(ANSWER_TAGS)))

#: Runs in the browser, once per page load. Streamlit keeps the end of a conversation in view, so an answer's
#: sources would scroll its beginning away. This script stops scrolling when the latest question reaches the top; people
#: still scroll anywhere.
KEEP_BEGINNING = """
<script>
if (!window.hrAssistantBeginning) {
  window.hrAssistantBeginning = true;
  const scrolling = Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop");
  const farthest = (box) => {
    // What a colleague shared is read from its beginning.
    if (document.querySelector(".st-key-chat_shared")) return 0;
    const now = document.querySelector(".st-key-chat_now");
    if (!now) return Infinity;
    const before = [...document.querySelectorAll('[data-testid="stChatMessage"]')].filter((one) => !now.contains(one));
    if (!before.length) return Infinity;
    // On a phone the page goes on below its header.
    const header = document.querySelector('[data-testid="stHeader"]');
    const isOver = header && !getComputedStyle(header).backgroundColor.endsWith(", 0)");
    const top = Math.max(box.getBoundingClientRect().top, isOver ? header.getBoundingClientRect().bottom : 0);
    return Math.max(0, scrolling.get.call(box) + before.at(-1).getBoundingClientRect().top - top - 16);
  };
  // Streamlit goes on trying while it believes that the end is wanted; a turn of the wheel ends that.
  let timer = null;
  const rest = (box) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const at = scrolling.get.call(box);
      box.dispatchEvent(new WheelEvent("wheel"));
      scrolling.set.call(box, at - 1);
      setTimeout(() => scrolling.set.call(box, at), 150);
    }, 300);
  };
  let asked = null;
  const look = () => {
    const box = document.querySelector('[data-testid="stAppScrollToBottomContainer"]');
    if (!box) return;
    if (!Object.hasOwn(box, "scrollTop")) {
      Object.defineProperty(box, "scrollTop", {
        configurable: true,
        get() { return scrolling.get.call(this); },
        set(wanted) {
          const at = scrolling.get.call(this), most = Math.max(at, farthest(this));
          if (wanted > most + 1) rest(this);
          scrolling.set.call(this, Math.min(wanted, most));
        },
      });
    }
    const place = document.querySelector("[data-answer]");
    if (place && place.dataset.answer !== asked) {
      asked = place.dataset.answer;
      box.scrollTop = box.scrollHeight;
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
</script>
"""

#: Runs in the browser, once per page load. A typed but unsent question survives the end of the session: this tab
#: keeps it for this account, and restores it after the next sign-in. Only a single account's draft is kept, and signing
#: out deletes it. The draft is dropped when its question is in the conversation, or the field is emptied.
KEEP_DRAFT = """
<script>
if (!window.hrAssistantDraft) {
  window.hrAssistantDraft = true;
  const prefix = "hr-assistant-draft-", own = prefix + ACCOUNT;
  const forget = (isOwnToo) => {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(prefix) && (isOwnToo || key !== own)) sessionStorage.removeItem(key);
    }
  };
  forget(false);
  const question = () => document.querySelector('.st-key-chat_question [data-testid="stChatInputTextArea"]');
  let sent = null, seen = null;
  addEventListener("input", (event) => {
    if (event.target !== question()) return;
    sent = null;
    if (event.target.value.trim()) sessionStorage.setItem(own, event.target.value);
    else sessionStorage.removeItem(own);
  }, true);
  const send = () => { sent = question()?.value.trim() || sent; };
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && event.target === question()) send();
  }, true);
  addEventListener("click", (event) => {
    if (event.target.closest?.('[data-testid="stChatInputSubmitButton"]')) send();
  }, true);
  addEventListener("submit", (event) => {
    if (new URL(event.target.action).pathname === "/logout") forget(true);
  }, true);
  const words = (text) => text.replace(/\\s+/g, " ").trim();
  const look = () => {
    const field = question();
    if (sent !== null) {
      const asked = [...document.querySelectorAll('[data-testid="stChatMessage"]')];
      if (asked.some((one) => words(one.textContent).includes(words(sent)))) {
        sessionStorage.removeItem(own);
        sent = null;
      }
    }
    if (field && field !== seen && sent === null) {
      const draft = sessionStorage.getItem(own);
      if (draft && !field.value) {
        Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, draft);
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    seen = field;
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
</script>
"""

#: Runs in the browser, once per page load. Replaces Streamlit's messages for developers: while the server is out of
#: reach, a line at the top appears and disappears; if a page is closed to a person, the page explains it.
OWN_WORDS = """
<script>
window.hrAssistantLost = LOST;
if (!window.hrAssistantOwnWords) {
  window.hrAssistantOwnWords = true;
  let line = null, timer = null;
  const answers = async () => {
    try { return (await fetch("/api/health", { cache: "no-store" })).status < 502; } catch { return false; }
  };
  const found = async () => {
    if (!(await answers())) return;
    clearInterval(timer);
    line?.remove();
    line = null;
  };
  const lost = () => {
    if (line) return;
    line = document.createElement("div");
    line.id = "hr-assistant-lost";
    line.setAttribute("role", "alert");
    line.textContent = window.hrAssistantLost;
    line.style.cssText = "position:fixed;inset:0 0 auto 0;z-index:2000000;padding:.6rem 1rem;text-align:center;" +
      "font-weight:500;background:#8a4b08;color:#fff";
    document.body.append(line);
    timer = setInterval(found, 1000);
  };
  const look = () => {
    for (const title of document.querySelectorAll('section[role="dialog"] > h2')) {
      const isLost = title.textContent === "Connection error";
      if (!isLost && title.textContent !== "Page not found") continue;
      const dialog = title.parentElement;
      dialog.parentElement.style.visibility = "hidden";
      if (isLost) lost();
      dialog.querySelector(":scope > button")?.click();
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  addEventListener("offline", lost);
  addEventListener("hr-assistant-lost", async () => { if (!(await answers())) lost(); });
  look();
}
</script>
"""


def frame_scripts(account_id: UUID) -> str:
    """Return every page's scripts, in the reader's language, for the signed-in account."""
    sentence = _("The connection is lost. It comes back by itself; what you have written stays.")
    own_words = OWN_WORDS.replace("LOST", json.dumps(sentence).replace("<", "\\u003c"))
    latest = json.dumps(_("Latest answer")).replace("<", "\\u003c")
    draft = KEEP_DRAFT.replace("ACCOUNT", json.dumps(str(account_id)))
    follow = KEEP_SIGNED_IN.replace("LATEST", latest) + FOLLOW_ANSWERS
    return follow + KEEP_BEGINNING + draft + CHIPS + LOOK_OF_CHIPS + own_words


def put_off_sidebar(draw: Callable[[], None]) -> None:
    """Let the page draw the sidebar later with `draw_sidebar`, after its urgent parts."""
    st.session_state.frame_put_off = draw


def draw_sidebar() -> None:
    """Draw the sidebar's content, unless this run has drawn it already."""
    draw = st.session_state.get("frame_put_off")
    if draw is not None:
        st.session_state.frame_put_off = None
        draw()


def unseen_heading(text: str) -> str:
    """Return a hidden page heading for screen readers."""
    return f'<h1 class="hr-unseen">{escape(text)}</h1>'


SIGN_IN_AGAIN = """
<script>
location.assign("/login?ended=1&next=" + encodeURIComponent(location.pathname + location.search));
</script>
"""


LOOK = (
    "display:block;box-sizing:border-box;width:100%;padding:.5rem .75rem;margin:0 0 .5rem;font:inherit;"
    "font-size:.875rem;text-align:center;color:inherit;text-decoration:none;background:transparent;cursor:pointer;"
    "border:1px solid rgba(128,138,165,.45);border-radius:10px"
)


def link_here(words: str, address: str) -> str:
    """Build a link styled like a button which opens in this tab; Streamlit's link buttons open a new tab."""
    return f'<a href="{escape(address, quote=True)}" target="_self" style="{LOOK}">{escape(words)}</a>'


def account_actions(csrf_token: str) -> str:
    """Build the links to change the password and to sign out, in this tab.

    Signing out is an HTML form, not a Streamlit button: it sends a request, and the response clears the cookie. Without
    the token, which an old tab may lack, it is a link to a page asking for confirmation.
    """
    change = link_here(_("Change password"), "/account/password")
    change += link_here(_("Second factor"), "/account/second-factor")
    if not csrf_token:
        return change + link_here(_("Sign out"), "/logout")
    return change + (
        '<form method="post" action="/logout" style="margin:0">'
        f'<input type="hidden" name="csrf" value="{escape(csrf_token, quote=True)}">'
        f'<button type="submit" style="{LOOK}">{escape(_("Sign out"))}</button></form>'
    )
