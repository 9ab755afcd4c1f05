// ARIA roles missing in Streamlit's markup: its navigation has headings inside a list, and lists without list items.
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
