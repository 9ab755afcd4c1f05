"""The few pieces of HTML of the frame: signing out, noticing a session that has ended, announcing answers."""

from __future__ import annotations

from html import escape

#: Runs in the browser once per page load. A session ended elsewhere (signed out in another tab, account disabled) is
#: noticed within 15 s. Streamlit has no live region: what is written into `chat_now` is made one for screen readers.
KEEP_SIGNED_IN = """
<script>
if (!window.hrAssistantFrame) {
  window.hrAssistantFrame = true;
  const signIn = () =>
    location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
  const check = async () => {
    try {
      const answer = await fetch("/api/me", { headers: { accept: "application/json" }, cache: "no-store" });
      if (answer.status === 401) signIn();
    } catch { /* offline for a moment: Streamlit shows that it reconnects */ }
  };
  setInterval(check, 15000);
  addEventListener("focus", check);
  const announce = () => {
    const now = document.querySelector(".st-key-chat_now");
    if (now && now.getAttribute("role") !== "log") {
      now.setAttribute("role", "log");
      now.setAttribute("aria-live", "polite");
      now.setAttribute("aria-label", "Latest answer");
    }
  };
  new MutationObserver(announce).observe(document.body, { childList: true, subtree: true });
  announce();
}
</script>
"""

SIGN_IN_AGAIN = """
<script>
location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
</script>
"""


def sign_out_form(csrf_token: str) -> str:
    """A real form and not a button of Streamlit: signing out is a request of its own, and its answer clears the cookie.

    Without the token, which an old tab may lack, it is a link to the page that asks once more.
    """
    look = (
        "display:block;box-sizing:border-box;width:100%;padding:.45rem .75rem;font:inherit;text-align:center;"
        "color:inherit;text-decoration:none;background:transparent;cursor:pointer;"
        "border:1px solid rgba(128,138,165,.45);border-radius:10px"
    )
    if not csrf_token:
        return f'<a href="/logout" target="_self" style="{look}">Sign out</a>'
    return (
        '<form method="post" action="/logout" style="margin:0">'
        f'<input type="hidden" name="csrf" value="{escape(csrf_token, quote=True)}">'
        f'<button type="submit" style="{look}">Sign out</button></form>'
    )
