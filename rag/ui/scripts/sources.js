// Runs in the browser, once per page load. Text from documents is only ever set as text.
if (!window.hrAssistantChips) {
  window.hrAssistantChips = true;
  const HREF = /^#(s[0-9a-f]{8}-[0-9]+)(-[0-9]+)?$/;
  const card = document.createElement("div");
  card.id = "hr-source-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);
  const chipOf = (target) => target instanceof Element && target.closest('a[href^="#s"]');
  const sourceOf = (chip) => {
    const found = chip && HREF.exec(chip.getAttribute("href"));
    const at = (place) => document.querySelector('[data-source="' + place + '"]');
    return found && (at(found[1] + (found[2] || "")) || at(found[1]));
  };
  const hide = () => { card.hidden = true; };
  const show = (chip) => {
    const source = sourceOf(chip);
    if (!source) return;
    card.replaceChildren();
    for (const part of ["title", "place", "sentence"]) {
      if (!source.dataset[part]) continue;
      const line = document.createElement("div");
      line.className = part;
      line.dir = "auto";
      line.textContent = source.dataset[part];
      card.append(line);
    }
    chip.setAttribute("aria-describedby", card.id);
    card.hidden = false;
    const at = chip.getBoundingClientRect(), size = card.getBoundingClientRect();
    card.style.left = Math.max(8, Math.min(at.left - 12, innerWidth - size.width - 8)) + "px";
    card.style.top = (at.top > size.height + 12 ? at.top - size.height - 6 : at.bottom + 6) + "px";
  };
  for (const [come, go] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(come, (event) => { const chip = chipOf(event.target); if (chip) show(chip); });
    document.addEventListener(go, (event) => { if (chipOf(event.target)) hide(); });
  }
  // What scrolls may be the page alone, under a pointer or a focus that stays: the card goes along.
  addEventListener("scroll", () => {
    if (card.hidden) return;
    const chip = document.querySelector('a[href^="#s"]:hover') || chipOf(document.activeElement);
    if (chip) show(chip); else hide();
  }, true);
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); }, true);
  // Beside an opened page the answers are narrower and longer: what was clicked stays where it was.
  const keepPlace = (clicked) => {
    const block = clicked.closest("[data-testid=stMainBlockContainer]");
    if (!block) return;
    const { top } = clicked.getBoundingClientRect(), width = block.clientWidth;
    const watcher = new ResizeObserver(() => {
      if (block.clientWidth === width) return;
      watcher.disconnect();
      document.getElementById("stMain").scrollTop += clicked.getBoundingClientRect().top - top;
    });
    watcher.observe(block);
    setTimeout(() => watcher.disconnect(), 10000);
  };
  // A page opens at its mark, which may be at its end: the first line with the colour of a sentence, else a passage.
  document.addEventListener("load", ({ target }) => {
    const view = target instanceof HTMLImageElement && target.closest(".st-key-page_view");
    if (!view || !target.src.includes("highlight=")) return;
    const [width, height] = [64, 512], drawn = new OffscreenCanvas(width, height).getContext("2d");
    drawn.drawImage(target, 0, 0, width, height);
    const { data } = drawn.getImageData(0, 0, width, height);
    const line = (yellow) => {
      for (let at = 0; at < data.length; at += 4) if (data[at] - data[at + 2] > yellow) return at / 4 / width / height;
      return null;
    };
    const share = line(110) ?? line(45), page = target.getBoundingClientRect(), { top } = view.getBoundingClientRect();
    const below = page.top + share * page.height - top - view.clientHeight / 2;
    if (share !== null && below > 0) view.scrollTop += below;
  }, true);
  const open = (source) => {
    const button = () => document.querySelector(".st-key-" + source.dataset.opener + " button");
    if (button()) return button().click();
    const closed = document.querySelector(".st-key-chat_sources_" + source.dataset.message + " summary");
    if (!closed) return;
    const watcher = new MutationObserver(() => {
      if (!button()) return;
      watcher.disconnect();
      button().click();
    });
    watcher.observe(document.body, { childList: true, subtree: true });
    setTimeout(() => watcher.disconnect(), 10000);
    closed.click();
  };
  document.addEventListener("click", (event) => {
    const source = sourceOf(chipOf(event.target));
    if (source) {
      event.preventDefault();
      event.stopPropagation();
      hide();
      keepPlace(event.target);
      return open(source);
    }
    const opener = event.target instanceof Element && event.target.closest('[class*="_open_"] button');
    if (opener) keepPlace(opener);
    const copy = event.target instanceof Element && event.target.closest(".hr-copy");
    if (copy) {
      const words = copy.lastElementChild;
      const said = copy.dataset.said ??= words.textContent;
      const done = () => {
        words.textContent = copy.dataset.done;
        setTimeout(() => { words.textContent = said; }, 1500);
      };
      const byHand = () => {
        const field = document.createElement("textarea");
        field.value = copy.dataset.copy;
        copy.after(field);
        field.select();
        document.execCommand("copy");
        field.remove();
        copy.focus();
        done();
      };
      if (navigator.clipboard) navigator.clipboard.writeText(copy.dataset.copy).then(done, byHand);
      else byHand();
    }
  }, true);
  let view = null, opener = null, openerKey = "", closedAt = 0;
  const remember = (element) => {
    const keyed = element.closest('[class*="st-key-"]');
    opener = element;
    openerKey = keyed ? [...keyed.classList].find((name) => name.startsWith("st-key-")) : "";
  };
  // The page may be drawn again before the view is there, and the button that was pressed be gone by then.
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button");
    if (button && !view) remember(button);
  }, true);
  const look = () => {
    for (const chip of document.querySelectorAll('a[href^="#s"]:not([aria-label])')) {
      const source = sourceOf(chip);
      if (source) chip.setAttribute("aria-label", source.dataset.label);
    }
    const now = document.querySelector(".st-key-page_view");
    if (now && now !== view) {
      now.setAttribute("role", "dialog");
      now.setAttribute("aria-label", (now.querySelector("strong") || now).textContent);
      const close = now.querySelector("button");
      if (!view && close) {
        if (document.activeElement !== document.body) remember(document.activeElement);
        close.focus({ preventScroll: true });
      }
    }
    // The page is drawn again while the view closes: the button that opened it may be another element by then.
    if (!now && view && opener) closedAt = Date.now();
    if (!now && Date.now() - closedAt < 5000 && document.activeElement === document.body) {
      const drawnAgain = () => openerKey && document.querySelector(`.${CSS.escape(openerKey)} button`);
      const again = opener.isConnected ? opener : drawnAgain();
      if (again) again.focus({ preventScroll: true });
    }
    view = now;
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
