// Puts an assistant into a page: <script src="https://…/widget.js" data-key="pub_…" async></script>
// data-target="#id" shows it in that element instead of behind a button; data-theme="light" or "dark" fixes its colours.
(() => {
  "use strict";
  const tag = document.currentScript;
  const key = tag && tag.dataset.key;
  if (!key || tag.dataset.isShown) return;
  tag.dataset.isShown = "yes";
  const words = __WORDS__;
  const address = new URL("widget", tag.src);
  address.searchParams.set("key", key);
  for (const name of ["theme", "language"]) if (tag.dataset[name]) address.searchParams.set(name, tag.dataset[name]);
  // Styles are set one by one: a page may forbid style attributes, and its own rules must not reach these.
  const styled = (element, styles) => {
    for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value, "important");
    return element;
  };
  const frame = document.createElement("iframe");
  frame.title = tag.dataset.label || words.open;
  frame.referrerPolicy = "origin";
  styled(frame, { border: "0", width: "100%", height: "100%", "color-scheme": "normal" });
  const begin = () => {
    const target = tag.dataset.target && document.querySelector(tag.dataset.target);
    if (target) {
      frame.loading = "lazy";
      if (!target.clientHeight) styled(frame, { height: "32rem" });
      frame.src = address;
      target.append(frame);
      return;
    }
    const button = styled(document.createElement("button"), {
      all: "initial", position: "fixed", "inset-inline-end": "1.25rem", bottom: "1.25rem", "z-index": "2147483000",
      padding: ".8rem 1.15rem", font: "600 16px/1.2 system-ui, sans-serif", color: "#fff", background: "#3353d4",
      "border-radius": "999px", "box-shadow": "0 6px 24px -6px #0f172a80", cursor: "pointer",
    });
    button.type = "button";
    const panel = styled(document.createElement("div"), {
      all: "initial", display: "none", position: "fixed", "inset-inline-end": "1.25rem", bottom: "5rem",
      width: "min(24rem, calc(100vw - 2.5rem))", height: "min(38rem, calc(100dvh - 7rem))", "z-index": "2147483000",
      overflow: "hidden", "border-radius": "16px", "box-shadow": "0 12px 48px -12px #0f172a99", background: "Canvas",
    });
    panel.id = "hr-assistant-" + key.slice(-6);
    button.setAttribute("aria-controls", panel.id);
    let isOpen = false;
    const show = (open) => {
      isOpen = open;
      if (open && !frame.src) frame.src = address;
      styled(panel, { display: open ? "block" : "none" });
      button.textContent = open ? words.close : tag.dataset.label || words.open;
      button.setAttribute("aria-expanded", String(open));
      if (open) frame.focus();
      else button.focus();
    };
    const ring = (outline) => () => styled(button, { outline, "outline-offset": "2px" });
    button.addEventListener("focus", ring("3px solid #7d97ff"));
    button.addEventListener("blur", ring("none"));
    button.addEventListener("click", () => show(!isOpen));
    window.addEventListener("message", (event) => {
      if (event.origin !== address.origin || event.source !== frame.contentWindow) return;
      if (event.data === "hr-assistant:close") show(false);
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && isOpen) show(false); });
    button.textContent = tag.dataset.label || words.open;
    button.setAttribute("aria-expanded", "false");
    panel.append(frame);
    document.body.append(panel, button);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
