// Hands a drop anywhere on the page to the uploader, which handles it like its usual drops; an uploader in an open
// dialog or panel comes first. A folder gives all its files, named by their path below the folder.
if (!window.hrAssistantDrop) {
  window.hrAssistantDrop = true;
  const input = () => document.querySelector("[role=dialog] [data-testid=stFileUploader] input[type=file]") ??
    document.querySelector(".st-key-documents_add input[type=file]");
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const shade = document.createElement("div");
  shade.setAttribute("style", "position:fixed;inset:0;z-index:999990;display:none;align-items:center;" +
    "justify-content:center;pointer-events:none;background:rgba(51,83,212,.14);border:3px dashed #3353d4;" +
    "font:600 1.2rem Inter,sans-serif;color:#3353d4");
  document.body.append(shade);
  const show = (is) => { shade.style.display = is ? "flex" : "none"; };
  addEventListener("dragover", (event) => {
    const place = input();
    if (!place || !holdsFiles(event)) return;
    event.preventDefault();
    shade.textContent = place.closest("[data-testid=stFileUploader]").querySelector("label")?.textContent ?? "";
    show(true);
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) show(false); });
  const filesBelow = async (entry, path) => {
    if (entry.isFile) {
      const file = await new Promise((found, failed) => entry.file(found, failed));
      return [new File([file], path, { type: file.type, lastModified: file.lastModified })];
    }
    const reader = entry.createReader(), entries = [];
    for (let some; (some = await new Promise((found, failed) => reader.readEntries(found, failed))).length;)
      entries.push(...some);
    const shown = entries.filter(({ name }) => !name.startsWith("."));
    return (await Promise.all(shown.map((one) => filesBelow(one, path ? `${path}/${one.name}` : one.name)))).flat();
  };
  const give = (place, files) => {
    place.files = files;
    place.dispatchEvent(new Event("change", { bubbles: true }));
  };
  addEventListener("drop", async (event) => {
    show(false);
    const place = input();
    if (!place || !holdsFiles(event)) return;
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const field = event.target.closest?.("[data-testid=stFileUploaderDropzone]");
    if (!entries.some((entry) => entry.isDirectory)) {
      if (!field) give(place, event.dataTransfer.files);
      return;
    }
    event.stopPropagation();
    field?.dispatchEvent(new DragEvent("dragleave", { bubbles: true }));
    const isOne = entries.length === 1;
    const found = new DataTransfer();
    for (const entry of entries)
      for (const file of await filesBelow(entry, isOne && entry.isDirectory ? "" : entry.name)) found.items.add(file);
    give(place, found.files);
  }, true);
}
