"""Adapt Streamlit's index HTML file: our name, and the style for the first paint.

Styles and scripts drawn by a page arrive with its first run, too late for the first paint: the sidebar would push the
page aside, and grey bars would fill empty places.
"""

from __future__ import annotations

import re
from pathlib import Path

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.ui.theme import PRODUCT

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
#: A phone's keyboard resizes the page, so the question stays above it.
VIEWPORT = "width=device-width, initial-scale=1, interactive-widget=resizes-content"
#: Streamlit's default width for an open sidebar.
SIDEBAR_WIDTH = "281px"

#: Streamlit modules a page needs, by file name prefix. Otherwise the browser loads them one by one, and only after the
#: page's script has run.
NEEDED_SOON = {
    "/analytics": ("Metric.", "loadVegaEmbed.", "embed.", "PlotlyChart."),
    "/documents": ("DataFrame.", "arrowFormatUtils."),
}

#: Rules starting with `.stApp` override Streamlit's later rules.
LOOK = """
<style>
/* Nothing jumps: the place of the sidebar is kept, and nothing grey stands for what is still loaded. */
[data-testid=stAppSkeleton], [data-testid=stSkeleton] { visibility: hidden !important; }
@media (min-width: 768px) {
  [data-testid=stAppViewContainer]:not(:has([data-testid=stSidebar])) { padding-inline-start: SIDEBAR_WIDTH; }
}
[data-testid=stSidebarContent]:not(:has([data-testid=stSidebarNav])) [data-testid=stSidebarUserContent] {
  visibility: hidden;
}
[data-testid=stMainBlockContainer]:not(:has([data-testid=stElementContainer], [data-testid=stLayoutWrapper])) {
  visibility: hidden;
}
/* A page that becomes wide with its first words has no narrow place, which would hold Streamlit's stand-in for content
   alone, to jump from. */
[data-testid=stMainBlockContainer]:has(> * > [data-testid=stElementContainer]:only-child:empty),
[data-testid=stMainBlockContainer]:has(> * > :only-child > [data-testid=stAppSkeleton]) {
  display: none;
}
/* Widgets are loaded when they are first needed. A row that holds one, and what lies below, is shown once it has its
   height: on a phone, rows wrap with their last word. Markdown says it is visible, whatever it stands in. */
[data-testid=stMainBlockContainer] :has([data-testid=stSkeleton]) ~ *,
[data-testid=stMainBlockContainer] .stHorizontalBlock:has([data-testid=stSkeleton]),
[data-testid=stMainBlockContainer] [data-testid=stElementContainer]:has([data-testid=stSkeleton]) {
  visibility: hidden;
}
[data-testid=stMainBlockContainer] :has([data-testid=stSkeleton]) ~ * [data-testid=stMarkdown] > div,
[data-testid=stMainBlockContainer] .stHorizontalBlock:has([data-testid=stSkeleton]) [data-testid=stMarkdown] > div {
  visibility: inherit;
}
@media (min-width: 768px) {
  [data-testid=stFileUploader]:not(:has([data-testid=stFileUploaderFile])) [data-testid=stFileUploaderDropzone] {
    max-height: 64px; overflow: hidden;
  }
}
/* Where files are added, the words above the field fit beside it, or it has the row for itself. */
.stApp [data-testid=stLayoutWrapper]:has(> .st-key-documents_add) { min-width: min(100%, 18rem); }
/* The field is a column until its width is measured, then a row: here it is a row from the start. */
.stApp .st-key-documents_add [data-testid=stFileUploaderDropzone] {
  flex-direction: row; align-items: flex-start; gap: 1rem;
}
/* The table of the documents is as wide as the page, so that long titles are told apart. The first container of the
   page decides: what is drawn already would move. */
@media (min-width: 768px) {
  .stApp [data-testid=stMainBlockContainer]:has(.st-key-documents_head) { padding-inline: 1.75rem; }
}
/* The account has a place of its own below everything else in the sidebar, which scrolls above it and is never under
   it: the menu of an administrator and their conversations are higher than a laptop's screen. */
.stApp [data-testid=stSidebarContent]:has(.st-key-frame_account) { position: static; height: calc(100% - 3.75rem); }
.stApp [data-testid=stSidebarContent]:has(.st-key-frame_account .stPageLink) { height: calc(100% - 6rem); }
.stApp [data-testid=stSidebarUserContent] { padding-bottom: .5rem; }
[data-testid=stSidebarUserContent] [data-testid=stLayoutWrapper]:has(> .st-key-frame_account) {
  position: absolute; inset-inline: 1.9rem; bottom: 0; width: auto; padding-block: .6rem;
  border-top: 1px solid light-dark(#d9deec, #2a3350);
}
@media (max-width: 767px) {
  [data-testid=stSidebarUserContent] :has(> .st-key-frame_account) { inset-inline: 1.25rem !important; }
}
/* Scripts take no room. */
[data-testid=stSidebarUserContent] [data-testid=stElementContainer]:has(> .stHtml > script) { position: absolute; }
@media (pointer: coarse) { button [data-has-shortcut=true] kbd { display: none; } }
@media (max-width: 640px) {
  .stApp [data-testid=stBottomBlockContainer] { padding-bottom: max(.75rem, env(safe-area-inset-bottom)); }
}
/* What a button of a menu opens is above the menu; a menu within a dialog stands behind it in the page. */
body > [data-st-overlay-root]:has(~ .stDialog) [data-testid=stPopoverBody] { visibility: hidden; }
/* A heading for those who do not see the page: a conversation shows none. */
[data-testid=stElementContainer]:has(.hr-unseen) { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
/* A button that shows its icon alone has a name for those who do not see it. */
:is(.st-key-frame_shortcuts, .st-key-page_view_close, [class*=st-key-chat_actions_]) button
  [data-testid=stMarkdownContainer] { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }
/* What is a quieter grey is still read. */
.stApp [data-testid=stCaptionContainer] { opacity: 1; color: color-mix(in srgb, currentColor 68%, transparent); }
.stApp [data-testid=stCaptionContainer] a { color: light-dark(#2f4fd0, #9fb4ff); }
:root button[data-selected=true] :is(p, span),
:root button:is([kind=tertiary], [kind=secondary]):is(:hover, :focus-visible, :active, [aria-expanded=true]) p {
  color: light-dark(#2740ab, #c0cdfb);
}
:root [data-testid=stDateInput] [role=spinbutton] { display: inline-block; min-width: 1.65rem; min-height: 1.65rem;
  line-height: 1.65rem; text-align: center; }
.stApp :is(a, button, summary, [role=tab], [role=radio], [tabindex="0"]):focus-visible {
  outline: 2px solid light-dark(#3353d4, #9fb4ff); outline-offset: 2px;
}
/* The box of a text shows the focus, all around its icon and its buttons. */
.stApp [data-testid=stTextInputRootElement] input:focus-visible { outline: none; }
.stApp [data-testid=stTextInputRootElement]:focus-within { box-shadow: 0 0 0 1px light-dark(#3353d4, #9fb4ff); }
/* Streamlit begins every text at the left. */
[dir=rtl] [data-testid=stElementContainer] { text-align: start; }
/* It also rounds, borders, closes and hides its sidebar at fixed sides. */
[dir=rtl] [role=radiogroup] > button[data-variant=segmented_control] { margin: 0 0 0 -1px; }
[dir=rtl] [role=radiogroup] > button[data-variant=segmented_control]:first-child { border-radius: 0 10px 10px 0; }
[dir=rtl] [role=radiogroup] > button[data-variant=segmented_control]:last-child {
  margin: 0; border-radius: 10px 0 0 10px;
}
[dir=rtl] .stApp:has([data-testid=stExpandSidebarButton]) [data-testid=stSidebar] { transform: translateX(100vw); }
[dir=rtl] [data-testid=stHeader] div:has(> div > [data-testid=stHeaderLogo]) { margin: 0 15px 0 0; }
[dir=rtl] label:has([role=switch]) > div:first-of-type { direction: ltr; transform: scaleX(-1); }
[dir=rtl] section[role=dialog] > button { right: auto; left: 1.4rem; }
[dir=rtl] section[role=dialog] > h2 { padding-inline: 0 2.5rem; }
[dir=rtl] [data-testid=stTextInputRootElement] > div:has([data-testid=stTextInputIcon]) { padding: 0 .6rem 0 0; }
/* On a phone choices side by side wrap: each is whole by itself then. */
@media (max-width: 640px) {
  .stApp [role=radiogroup]:has(> [data-variant=segmented_control]) { gap: .35rem; }
  .stApp [role=radiogroup] > button[data-variant=segmented_control]:is(*, :first-child, :last-child) {
    margin: 0; border-radius: 10px;
  }
}
/* Chosen names wrap there; a list shows the whole of what a field has no room for. */
@media (max-width: 640px) {
  [data-testid=stMultiSelectTagsContainer] span { height: auto; white-space: normal; }
  [data-testid=stSelectbox] input { text-overflow: ellipsis; }
}
/* What people and documents wrote runs in the direction of its own language, whatever that of the page. */
[data-testid=stChatMessage] :is(p, li, td, th, h1, h2, h3, h4, blockquote),
[class*="_card_"] [data-testid=stCaptionContainer] p,
:is([class*=st-key-chat_open_], [class*=st-key-library_open_], .st-key-frame_found) p,
[class*=st-key-chat_suggestion] p,
.stApp :is(textarea, [data-testid=stTextInput] input) { unicode-bidi: plaintext; text-align: start; }
[data-testid=stChatMessage] :is([role=img], a[href^="#s"]) { unicode-bidi: isolate; }
/* A target of a finger, also where it is only three dots. */
.stApp [data-testid=stMenuButtonButton] { min-width: 1.75rem; }
.stApp main:focus-visible { outline-offset: -2px; }
</style>
""".replace("SIDEBAR_WIDTH", SIDEBAR_WIDTH)

#: ARIA roles missing in Streamlit's markup: its navigation has headings inside a list, and lists without list items.
ROLES = """
<script>
(() => {
  const set = (node, name, value) => { if (node.getAttribute(name) !== value) node.setAttribute(name, value); };
  const look = () => {
    const list = document.querySelector('[data-testid="stSidebarNavItems"]');
    if (list && list.querySelector(":scope > div")) {
      set(list, "role", "presentation");
      for (const item of list.querySelectorAll(":scope > li")) set(item, "role", "presentation");
      for (const group of list.querySelectorAll(":scope > div")) {
        set(group, "role", "presentation");
        for (const item of group.querySelectorAll(":scope > li")) set(item, "role", "presentation");
      }
    }
    for (const zone of document.querySelectorAll('[data-testid="stFileUploaderDropzone"]')) set(zone, "role", "group");
    // A title that is too long is cut at its end, which in Arabic is at the left.
    for (const title of document.querySelectorAll('[class*=st-key-chat_open_] [data-testid="stMarkdownContainer"]'))
      set(title, "dir", "auto");
    // What floats above the page is outside of what Streamlit calls dark or light.
    const app = document.querySelector('[data-testid="stApp"]');
    if (app && document.querySelector("#stFloatingOverlayPortal > *")) {
      const scheme = getComputedStyle(app).colorScheme, root = document.documentElement;
      if (root.style.colorScheme !== scheme) root.style.colorScheme = scheme;
    }
    for (const toast of document.querySelectorAll('[data-testid="stToast"]'))
      if (!document.getElementById(toast.getAttribute("aria-labelledby"))) set(toast, "aria-label", toast.textContent);
    if (!document.getElementById("stMain"))
      document.querySelector('[data-testid="stAppScrollToBottomContainer"]')?.setAttribute("id", "stMain");
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
})();
</script>
"""


#: People read an answer from its beginning. Streamlit scrolls down with each addition, so the beginning of a long
#: answer leaves a small screen too early. This script moves the last question to the top and no further, until the
#: reader scrolls. A wheel event ends Streamlit's scrolling, so the script sends one.
READING = """
<script>
(() => {
  const place = Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop");
  let main = null, follows = false, isDue = false, releasedAt = 0, writtenAt = 0;
  const farthest = () => {
    const messages = main.querySelectorAll('[data-testid="stChatMessage"]');
    const last = messages[messages.length - 1];
    if (!last) return Infinity;
    const answer = last.getBoundingClientRect(), top = main.getBoundingClientRect().top + 64;
    const question = messages[messages.length - 2]?.getBoundingClientRect();
    const above = question ? Math.min(answer.top - question.top, main.clientHeight * 0.35) : 0;
    return Math.max(0, place.get.call(main) + answer.top - above - top);
  };
  const release = () => {
    if (performance.now() - releasedAt < 250) return;
    releasedAt = performance.now();
    main.dispatchEvent(new WheelEvent("wheel"));
    setTimeout(() => main.dispatchEvent(new Event("scroll")), 15);
  };
  const hold = (element) => {
    main = element;
    Object.defineProperty(element, "scrollTop", {
      configurable: true,
      get() { return place.get.call(this); },
      set(wanted) {
        const now = place.get.call(this), most = farthest();
        if (wanted > now && wanted > most) release();
        place.set.call(this, wanted > now ? Math.max(now, Math.min(wanted, most)) : wanted);
      },
    });
  };
  const look = () => {
    isDue = false;
    const found = document.querySelector('[data-testid="stAppScrollToBottomContainer"]');
    if (!found) return;
    if (found !== main) hold(found);
    for (const growing of found.querySelectorAll("[data-answer]:not([data-read])")) {
      growing.dataset.read = "yes";
      follows = true;
    }
    // The stored answer and its sources take the place of the growing one within a moment.
    if (found.querySelector("[data-answer]")) writtenAt = performance.now();
    else if (performance.now() - writtenAt > 3000) follows = false;
    if (follows) main.scrollTop = main.scrollHeight - main.clientHeight;
  };
  const soon = () => { if (!isDue) { isDue = true; requestAnimationFrame(look); } };
  const stop = (event) => { if (event.isTrusted) follows = false; };
  for (const name of ["wheel", "touchmove"]) addEventListener(name, stop, { capture: true, passive: true });
  addEventListener("pointerdown", (event) => { if (event.target === main) stop(event); }, true);
  addEventListener("keydown", (event) => {
    if (event.key === "Tab") return stop(event);
    const turns = ["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"].includes(event.key);
    if (turns && !event.target.closest?.("textarea, input")) stop(event);
  }, true);
  new MutationObserver(soon).observe(document, { childList: true, subtree: true, characterData: true });
})();
</script>
"""

#: In a panel, Escape closes the open calendar or list, not the panel with all typed text. The panel gets the key before
#: every other listener except this one. A list closes when its field loses focus, a calendar on a click elsewhere.
ESCAPE = """
<script>
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !event.isTrusted) return;
  const panel = document.querySelector("[role=dialog]");
  const calendar = document.querySelector("[data-testid=stDateInputCalendar]");
  const list = document.querySelector("[data-testid=stSelectboxVirtualDropdown], [data-testid=stMultiSelectDropdown]");
  if (!panel || !(calendar || list)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  if (list) return document.activeElement?.blur();
  const place = panel.querySelector("h1, h2, h3") ?? panel;
  for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"])
    place.dispatchEvent(new (kind.startsWith("pointer") ? PointerEvent : MouseEvent)(kind,
      { bubbles: true, cancelable: true, composed: true }));
}, true);
</script>
"""

#: In the library a click anywhere on a row opens its document. A table only reacts to clicks on a title's words, so
#: pointer events further right are moved to the first letter. Tick boxes, headers, scrollbars and keys stay unchanged.
#: A table scrolled sideways shows the title during the click.
ROWS = """
<script>
(() => {
  const HEAD = 36, LETTER = 52;
  let pressed = null;
  const send = (event, kind, box) => event.target.dispatchEvent(new PointerEvent(kind, {
    bubbles: true, cancelable: true, composed: true, clientX: box.left + LETTER, clientY: event.clientY,
    button: event.button, buttons: kind === "pointerdown" ? 1 : event.buttons, pointerId: event.pointerId,
    pointerType: event.pointerType, isPrimary: event.isPrimary,
  }));
  const follow = (event) => {
    const table = event.target;
    if (!event.isTrusted || event.button > 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!table.classList?.contains("dvn-scroller") || !table.closest("[class*=st-key-documents_table]")) return;
    const box = table.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (x <= LETTER || x > table.clientWidth || y < HEAD || y > table.clientHeight) return;
    event.stopImmediatePropagation();
    const left = table.scrollLeft;
    if (!left || event.type === "pointermove") return send(event, event.type, box);
    if (event.type === "pointerdown") {
      pressed = [x, y];
    } else if (pressed && Math.hypot(x - pressed[0], y - pressed[1]) < 8) {
      pressed = null;
      table.scrollLeft = 0;
      setTimeout(() => send(event, "pointerdown", box), 60);
      setTimeout(() => { send(event, "pointerup", box); table.scrollLeft = left; }, 120);
    }
  };
  for (const kind of ["pointerdown", "pointermove", "pointerup"]) addEventListener(kind, follow, true);
})();
</script>
"""

#: Loaded before the first paint: a late font change would reflow the text.
FONT = "./app/static/inter-latin-wght-normal.woff2"
PRELOADED = re.compile(r'href="\./static/media/[^"]+\.woff2"')


def shell(index: str) -> str:
    """Return Streamlit's HTML file with our name, icon and first-paint styles."""
    changed = index.replace("<title>Streamlit</title>", f"<title>{PRODUCT}</title>")
    # Streamlit looks for a "shortcut icon"; without one, ours stays. Otherwise every page would first try the menu's
    # icon at fonts.gstatic.com.
    changed = changed.replace('rel="shortcut icon" href="./favicon.png"', 'rel="icon" href="./app/static/mark.svg"')
    changed = PRELOADED.sub(f'href="{FONT}"', changed, count=1)
    before, _, after = changed.partition('name="viewport"')
    _, _, after = after.partition("/>")
    changed = f'{before}name="viewport" content="{VIEWPORT}" />{after}'
    return changed.replace("</head>", f"{LOOK}{ROLES}{READING}{ESCAPE}{ROWS}</head>")


def preloads(names: tuple[str, ...], folder: Path) -> str:
    """Return links telling the browser to load and compile these modules while it waits for the page."""
    files = sorted(path.name for name in names for path in (folder / "static" / "js").glob(f"{name}*.js"))
    return "".join(f'<link rel="modulepreload" href="/static/js/{file}">' for file in files)


class Shell:
    """Send the changed HTML file for every page instead of Streamlit's."""

    def __init__(self, app: ASGIApp, index: Path = INDEX) -> None:
        self._app = app
        self._theirs = index.read_bytes()
        html = shell(self._theirs.decode())
        self._ours = html.encode()
        self._of_paths = {
            path: html.replace("</head>", preloads(names, index.parent) + "</head>", 1).encode()
            for path, names in NEEDED_SOON.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        # Request the file whole and unconditionally: a browser may have cached it before our upgrade.
        unwanted = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name not in unwanted]}
        start: Message | None = None
        body = b""

        async def changing(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and self._may_be_theirs(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    await self._send(send, start, body, scope["path"])

        await self._app(scope, receive, changing)

    def _may_be_theirs(self, start: Message) -> bool:
        headers = Headers(raw=start["headers"])
        is_html = headers.get("content-type", "").startswith("text/html")
        return is_html and headers.get("content-length") == str(len(self._theirs))

    async def _send(self, send: Send, start: Message, body: bytes, path: str) -> None:
        headers = MutableHeaders(raw=list(start["headers"]))
        if body == self._theirs:
            body = self._of_paths.get(path, self._ours)
            headers["content-length"] = str(len(body))
            for name in ("etag", "last-modified"):
                del headers[name]
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})
