// In a panel, Escape closes the open calendar or list, not the panel with all typed text. The panel gets the key before
// every other listener except this one. A list closes when its field loses focus, a calendar on a click elsewhere.
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !event.isTrusted) return;
  const panel = document.querySelector("[role=dialog]");
  const calendar = document.querySelector("[data-testid=stDateInputCalendar]");
  const list = document.querySelector("[data-testid=stSelectboxVirtualDropdown], [data-testid=stMultiSelectDropdown]");
  if (!panel || !(calendar || list)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  if (list) return document.activeElement?.blur();
  const place = panel.querySelector("h1, h2, h3") ?? panel;
  for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"])
    place.dispatchEvent(new (kind.startsWith("pointer") ? PointerEvent : MouseEvent)(kind,
      { bubbles: true, cancelable: true, composed: true }));
}, true);
