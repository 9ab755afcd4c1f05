// Runs in the browser, once per page load. Streamlit keeps the end of a conversation in view, so an answer's
// sources would scroll its beginning away. This script stops scrolling when the latest question reaches the top; people
// still scroll anywhere.
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
