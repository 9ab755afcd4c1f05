// Runs in the browser, once per page load. Only an answer's tags are accepted, without attributes, although the
// server sends nothing else. The style is copied from the question above, so nothing moves when the stored answer
// replaces the growing one.
if (!window.hrAssistantAnswers) {
  window.hrAssistantAnswers = true;
  const tags = new Set(TAGS);
  const taken = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
    const name = node.nodeName.toLowerCase();
    const copy = tags.has(name) ? document.createElement(name) : document.createDocumentFragment();
    const start = name === "ol" ? node.getAttribute("start") : null;
    if (start && /^[0-9]+$/.test(start)) copy.start = Number(start);
    for (const child of node.childNodes) copy.append(taken(child));
    return copy;
  };
  const parsed = (html) => taken(new DOMParser().parseFromString(html, "text/html").body);
  const follow = (place) => {
    place.dataset.followed = "yes";
    const like = document.querySelector('[data-testid="stChatMessage"] [data-testid="stMarkdownContainer"]');
    if (like) place.className = like.className;
    const source = new EventSource("/answers/" + encodeURIComponent(place.dataset.answer) + "/text");
    let growing = [];
    source.onopen = () => { place.replaceChildren(); growing = []; };
    source.onmessage = (event) => {
      if (!place.isConnected) return source.close();
      const news = JSON.parse(event.data);
      if (news.again) place.replaceChildren();
      else for (const node of growing) node.remove();
      place.append(parsed(news.finished));
      const last = parsed(news.growing);
      growing = [...last.childNodes];
      place.append(last);
    };
    source.addEventListener("end", () => source.close());
  };
  const look = () => {
    for (const place of document.querySelectorAll("[data-answer]:not([data-followed])")) follow(place);
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
