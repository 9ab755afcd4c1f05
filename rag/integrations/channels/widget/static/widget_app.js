// The page within the widget's frame: a question in, the answer while it is written, its sources, a thumb.
(() => {
  "use strict";
  const words = JSON.parse(document.body.dataset.words);
  const key = encodeURIComponent(document.body.dataset.key);
  const log = document.getElementById("log"), form = document.getElementById("ask");
  const field = document.getElementById("question");
  const send = document.getElementById("send"), stop = document.getElementById("stop");
  let conversation = null, reading = null, count = 0;

  if (window.parent !== window) {
    const close = document.getElementById("close");
    // Which site it is shown in does not matter: the message says nothing but that it is to be closed.
    const leave = () => window.parent.postMessage("hr-assistant:close", "*");
    close.hidden = false;
    close.addEventListener("click", leave);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") leave(); });
  }

  const add = (parent, name, values = {}) => {
    const element = Object.assign(document.createElement(name), values);
    parent.append(element);
    return element;
  };
  const follow = () => { log.scrollTop = log.scrollHeight; };

  const sourcesOf = (turn, text, sources) => {
    if (!sources.length) return;
    const details = add(turn, "details", { className: "sources" });
    add(details, "summary", { textContent: `${words.sources} (${sources.length})` });
    const list = add(details, "ol"), places = {};
    for (const source of sources) {
      const item = add(list, "li", { id: `source-${count}-${source.number}`, value: source.number, tabIndex: -1 });
      add(item, "b", { textContent: source.title });
      if (source.place) add(item, "span", { className: "place", textContent: source.place });
      add(item, "q", { textContent: source.sentence });
      places[source.number] = item;
    }
    // A number in the text leads to its source.
    for (const mark of text.querySelectorAll("sup")) {
      const item = places[mark.textContent];
      if (!item) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "chip";
      button.textContent = mark.textContent;
      button.setAttribute("aria-label", words.source.replace("{number}", mark.textContent));
      button.addEventListener("click", () => { details.open = true; item.focus(); item.scrollIntoView({ block: "nearest" }); });
      mark.replaceChildren(button);
    }
  };

  const thumb = (rating) => {
    const drawn = (name, values, parent) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
      if (parent) parent.append(element);
      return element;
    };
    const picture = drawn("svg", { viewBox: "0 0 24 24", width: 16, height: 16, "aria-hidden": "true", fill: "none",
      stroke: "currentColor", "stroke-width": 2, "stroke-linejoin": "round" });
    drawn("path", { d: "M7 11v9H3v-9zM7 11l4-8c1.7 0 3 1.3 3 3v4h5.3a2 2 0 0 1 2 2.3l-1.1 6a2 2 0 0 1-2 1.7H7",
      ...(rating ? {} : { transform: "rotate(180 12 12)" }) }, picture);
    return picture;
  };

  const thumbsOf = (turn, message) => {
    const bar = add(turn, "div", { className: "thumbs" });
    const said = add(bar, "span", { className: "said" });
    said.setAttribute("role", "status");
    for (const [rating, label] of [[1, words.helpful], [0, words.unhelpful]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(thumb(rating));
      button.title = label;
      button.setAttribute("aria-label", label);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", async () => {
        const answer = await fetch(`widget/rate?key=${key}`, {
          method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ message, rating }),
          credentials: "omit",
        }).catch(() => null);
        if (!answer || !answer.ok) return;
        for (const other of bar.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
        said.textContent = words.thanks;
      });
      bar.insertBefore(button, said);
    }
  };

  const ask = async (question) => {
    count += 1;
    const asked = add(log, "section", { className: "asked" });
    asked.setAttribute("aria-label", words.you);
    add(asked, "p", { textContent: question });
    const turn = add(log, "section", { className: "answered" });
    turn.setAttribute("aria-label", words.assistant);
    const text = add(turn, "div", { className: "text" });
    const growing = add(turn, "div", { className: "text growing" });
    const waiting = add(turn, "p", { className: "waiting", textContent: words.writing });
    follow();
    reading = new AbortController();
    send.hidden = true; stop.hidden = false;
    let message = null, ended = null;
    try {
      const answer = await fetch(`widget/ask?key=${key}`, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ question, conversation }),
        credentials: "omit", signal: reading.signal,
      });
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || words.failed);
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await lines.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          if (!event.startsWith("data: ")) continue;
          const news = JSON.parse(event.slice(6));
          if (news.type === "begun") { conversation = news.conversation; message = news.message; }
          if (news.type === "text") {
            waiting.remove();
            // HTML that our server wrote: tags without attributes, everything else as text.
            if (news.again) text.innerHTML = "";
            text.insertAdjacentHTML("beforeend", news.finished);
            growing.innerHTML = news.growing;
            follow();
          }
          if (news.type === "done") ended = news;
        }
      }
      if (!ended) throw new Error(words.failed);
      text.append(...growing.childNodes);
      sourcesOf(turn, text, ended.sources);
      for (const remark of ended.remarks) add(turn, "p", { className: "notice", textContent: remark });
      if (message && text.childNodes.length) thumbsOf(turn, message);
    } catch (error) {
      text.append(...growing.childNodes);
      if (error.name !== "AbortError") {
        add(turn, "p", { className: "notice", textContent: error instanceof TypeError ? words.failed : error.message })
          .setAttribute("role", "alert");
      }
    } finally {
      waiting.remove(); growing.remove();
      send.hidden = false; stop.hidden = true;
      reading = null;
      follow();
      field.focus();
    }
  };

  stop.addEventListener("click", () => { if (reading) reading.abort(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (!question || reading) return;
    field.value = "";
    ask(question);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  field.focus({ preventScroll: true });
})();
