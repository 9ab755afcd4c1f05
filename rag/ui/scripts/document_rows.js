// In the library a click anywhere on a row opens its document. A table only reacts to clicks on a title's words, so
// pointer events further right are moved to the first letter. Tick boxes, headers, scrollbars and keys stay unchanged.
// A table scrolled sideways shows the title during the click.
(() => {
  const HEAD = 36, LETTER = 52;
  let pressed = null;
  const send = (event, kind, box) => event.target.dispatchEvent(new PointerEvent(kind, {
    bubbles: true, cancelable: true, composed: true, clientX: box.left + LETTER, clientY: event.clientY,
    button: event.button, buttons: kind === "pointerdown" ? 1 : event.buttons, pointerId: event.pointerId,
    pointerType: event.pointerType, isPrimary: event.isPrimary,
  }));
  const follow = (event) => {
    const table = event.target;
    if (!event.isTrusted || event.button > 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!table.classList?.contains("dvn-scroller") || !table.closest("[class*=st-key-documents_table]")) return;
    const box = table.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (x <= LETTER || x > table.clientWidth || y < HEAD || y > table.clientHeight) return;
    event.stopImmediatePropagation();
    const left = table.scrollLeft;
    if (!left || event.type === "pointermove") return send(event, event.type, box);
    if (event.type === "pointerdown") {
      pressed = [x, y];
    } else if (pressed && Math.hypot(x - pressed[0], y - pressed[1]) < 8) {
      pressed = null;
      table.scrollLeft = 0;
      setTimeout(() => send(event, "pointerdown", box), 60);
      setTimeout(() => { send(event, "pointerup", box); table.scrollLeft = left; }, 120);
    }
  };
  for (const kind of ["pointerdown", "pointermove", "pointerup"]) addEventListener(kind, follow, true);
})();
