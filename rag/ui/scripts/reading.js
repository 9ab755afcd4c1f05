// People read an answer from its beginning. Streamlit scrolls down with each addition, so the beginning of a long
// answer leaves a small screen too early. This script moves the last question to the top and no further, until the
// reader scrolls. A wheel event ends Streamlit's scrolling, so the script sends one.
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
