// Runs in the browser, once per page load. If a session ends elsewhere (signed out in another tab, account
// disabled), the page notices within 15 s. Streamlit has no live region, so `chat_now` becomes one for screen readers.
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
