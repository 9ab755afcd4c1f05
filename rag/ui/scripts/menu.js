// On a phone the menu covers the page: it is closed when the page opens, and closes after each choice.
(() => {
  const CHOICES =
    ".stPageLink a, :is(.st-key-chat_new, [class*=st-key-chat_open_], .st-key-frame_found) button";
  const OPEN = "[data-testid=stSidebar][data-collapsed=false] [data-testid=stSidebarCollapseButton] button";
  const isCovering = () => innerWidth < 768;
  // Streamlit remembers an open menu. A page within another may have no storage.
  try {
    const remembered = Object.keys(localStorage).filter((name) => name.startsWith("stSidebarCollapsed"));
    if (isCovering()) for (const name of remembered) localStorage.removeItem(name);
  } catch {}
  addEventListener("click", (event) => {
    if (isCovering() && event.target.closest?.(CHOICES)) setTimeout(() => document.querySelector(OPEN)?.click());
  });
})();
