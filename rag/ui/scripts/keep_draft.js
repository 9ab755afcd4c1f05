// Runs in the browser, once per page load. A typed but unsent question survives the end of the session: this tab
// keeps it for this account, and restores it after the next sign-in. Only a single account's draft is kept, and signing
// out deletes it. The draft is dropped when its question is in the conversation, or the field is emptied.
if (!window.hrAssistantDraft) {
  window.hrAssistantDraft = true;
  const prefix = "hr-assistant-draft-", own = prefix + ACCOUNT;
  const forget = (isOwnToo) => {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(prefix) && (isOwnToo || key !== own)) sessionStorage.removeItem(key);
    }
  };
  forget(false);
  const question = () => document.querySelector('.st-key-chat_question [data-testid="stChatInputTextArea"]');
  let sent = null, seen = null;
  addEventListener("input", (event) => {
    if (event.target !== question()) return;
    sent = null;
    if (event.target.value.trim()) sessionStorage.setItem(own, event.target.value);
    else sessionStorage.removeItem(own);
  }, true);
  const send = () => { sent = question()?.value.trim() || sent; };
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && event.target === question()) send();
  }, true);
  addEventListener("click", (event) => {
    if (event.target.closest?.('[data-testid="stChatInputSubmitButton"]')) send();
  }, true);
  addEventListener("submit", (event) => {
    if (new URL(event.target.action).pathname === "/logout") forget(true);
  }, true);
  const words = (text) => text.replace(/\s+/g, " ").trim();
  const look = () => {
    const field = question();
    if (sent !== null) {
      const asked = [...document.querySelectorAll('[data-testid="stChatMessage"]')];
      if (asked.some((one) => words(one.textContent).includes(words(sent)))) {
        sessionStorage.removeItem(own);
        sent = null;
      }
    }
    if (field && field !== seen && sent === null) {
      const draft = sessionStorage.getItem(own);
      if (draft && !field.value) {
        Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, draft);
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    seen = field;
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
