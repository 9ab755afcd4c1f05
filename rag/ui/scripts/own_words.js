// Runs in the browser, once per page load. Replaces Streamlit's messages for developers: while the server is out of
// reach, a line at the top appears and disappears; if a page is closed to a person, the page explains it.
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
