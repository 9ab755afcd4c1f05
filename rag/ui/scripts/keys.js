// Runs in the browser, once per page load. Streamlit lacks shortcuts for `?` and `/`, and does not focus the
// question. On a touch screen a focus would open the keyboard over the page, so the script leaves it to the reader.
window.hrAssistantToQuestion = TO_QUESTION;
if (!window.hrAssistantKeys) {
  window.hrAssistantKeys = true;
  const isTouch = matchMedia("(pointer: coarse)").matches;
  const question = () => document.querySelector('[data-testid="stChatInputTextArea"]');
  const toQuestion = () => question()?.focus({ preventScroll: true });
  const skip = document.createElement("a");
  skip.id = "hr-to-question";
  skip.href = "#hr-question";
  skip.addEventListener("click", (event) => { event.preventDefault(); toQuestion(); });
  document.body.prepend(skip);
  const isTyping = (node) => node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.nodeName);
  // Another text is set as typing would set it, for React to notice.
  const write = (field, text) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const MENTION = /(^|\s)@([^\s@]*)$/;
  const CHOICE = '[data-testid="stPopoverBody"] :is(.st-key-chat_documents_text, .st-key-chat_documents) input';
  let isChoosing = false, isOpened = false, greeted = null, finder = null;
  // Who closes a dialog goes on where it was opened, or at the question where that is gone.
  const OVER = '[role="dialog"], [role="menu"], [data-testid="stMenuButtonBody"]';
  let opener = null, hasDialog = false;
  addEventListener("focusin", (event) => { if (!event.target.closest(OVER)) opener = event.target; }, true);
  const goBack = () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    if (opener?.isConnected && opener.checkVisibility()) opener.focus({ preventScroll: true });
    else if (!isTouch) toQuestion();
  };
  const choose = () => {
    const button = document.querySelector(".st-key-chat_filter button");
    if (!button) return;
    isChoosing = true;
    isOpened = false;
    if (!document.querySelector('[data-testid="stPopoverBody"]')) button.click();
  };
  addEventListener("input", (event) => {
    const field = event.target;
    if (field !== question() || isChoosing || event.data !== "@") return;
    if (MENTION.test(field.value.slice(0, field.selectionStart))) choose();
  }, true);
  const isOver = () =>
    Boolean(document.querySelector('section[role="dialog"], [role="dialog"][aria-modal="true"]'));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      // The page has one dialog at a time, and some show what is seen nowhere else.
      if (event.code === "KeyK" && !event.altKey && !event.shiftKey && isOver()) {
        event.stopImmediatePropagation();
        return event.preventDefault();
      }
      if (event.shiftKey && event.code === "KeyO") setTimeout(toQuestion, 0);
      return;
    }
    if (event.key.startsWith("Arrow") && event.target.closest?.(".st-key-frame_finder")) {
      const stops = [...document.querySelectorAll(".st-key-frame_finder :is(input, .st-key-frame_found button)")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      stops[Math.max(0, stops.indexOf(document.activeElement) + step)]?.focus();
      return;
    }
    // A dialog lies over the page, whose own Esc would close the document below it.
    const close = event.key === "Escape" && document.querySelector('section[role="dialog"] > button[aria-label]');
    if (close) {
      event.stopImmediatePropagation();
      event.preventDefault();
      // What was typed last is told to the server by leaving the field; a closed dialog has no field to leave.
      if (!isTyping(event.target)) return close.click();
      event.target.blur();
      return void setTimeout(() => close.click(), 150);
    }
    if (isTyping(event.target)) return;
    if (event.key === "?") {
      event.preventDefault();
      if (!isOver()) document.querySelector(".st-key-frame_shortcuts button")?.click();
    } else if (event.key === "/" && question()) {
      event.preventDefault();
      toQuestion();
    }
  }, true);
  addEventListener("click", (event) => {
    const isEdited = event.target.closest?.('[class*="st-key-chat_edit_"]');
    if (isEdited || (!isTouch && event.target.closest?.(".st-key-chat_new"))) setTimeout(toQuestion, 0);
  }, true);
  const look = () => {
    if (skip.textContent !== window.hrAssistantToQuestion) skip.textContent = window.hrAssistantToQuestion;
    const field = question();
    skip.hidden = !field;
    if (field) field.id = "hr-question";
    if (field && field !== greeted) {
      // The page one came from may still have the focus on its link.
      const active = document.activeElement;
      const isFree = active === document.body || active.closest('[data-testid="stSidebarNav"]');
      if (!isTouch && isFree && !document.querySelector(".st-key-page_view")) toQuestion();
    }
    greeted = field;
    const isOpen = isOver();
    if (hasDialog && !isOpen) setTimeout(goBack, 50);
    hasDialog = isOpen;
    const search = document.querySelector(".st-key-frame_finder input");
    // What was searched for last is there to be typed over.
    if (search && search !== finder) { search.focus(); search.select(); }
    finder = search;
    if (!isChoosing) return;
    const choice = document.querySelector(CHOICE);
    if (choice && !isOpened && field) {
      isOpened = true;
      const found = MENTION.exec(field.value);
      if (found) write(field, field.value.slice(0, found.index) + found[1]);
      choice.focus();
      if (found?.[2]) write(choice, found[2]);
    } else if (isOpened && !document.querySelector('[data-testid="stPopoverBody"]')) {
      isChoosing = false;
      toQuestion();
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
