window.hrAssistantWords = WORDS;
document.documentElement.lang = LANGUAGE;
document.documentElement.dir = DIRECTION;
if (!window.hrAssistantSpeaks) {
  window.hrAssistantSpeaks = true;
  // Widgets of Streamlit alone: what documents and people wrote is never touched.
  const places = '[data-testid="stFileUploader"],[data-testid="stStatusWidget"],[data-testid="stSkipToContent"],' +
    '[data-testid="stConnectionStatus"],[data-testid="stToolbar"],[data-testid="stDataFrameColumnMenu"],' +
    '[data-testid="stSelectbox"] input,[data-testid="stSelectbox"] button,[data-testid="stMultiSelect"] input,' +
    '[data-testid="stMultiSelect"] button,[data-key="__select_all__"],[role="listbox"][data-empty],' +
    '[data-testid^="stDateInput"],[data-testid="stNumberInput"] button,button[aria-label="Dismiss"],' +
    '[data-testid="stDataFrameColumnVisibilityMenu"],[data-testid="stDataFrameColumnFormattingMenu"],' +
    '[data-testid="stTabsScrollLeft"],[data-testid="stTabsScrollRight"],' +
    '[data-testid="stSidebarNav"],[data-testid="stSidebarLogo"],[data-testid="stLogoLink"],' +
    '[data-testid="stElementToolbar"],[data-testid="stTextInput"],' +
    '[data-testid="stDialog"] > button,[data-testid="stSidebarHeader"],[data-testid="stSidebarCollapseButton"],' +
    '[data-testid="stExpandSidebarButton"],[data-testid="stChatInput"],[data-testid="stPagination"],' +
    '[data-testid="stCode"] button,[data-testid="stCodeCopyButton"],' +
    '[data-testid="stSidebarNavViewButton"],[data-testid="stFeedback"],button kbd[aria-label]';
  const said = (text) => {
    const words = window.hrAssistantWords, plain = text.trim();
    if (Object.hasOwn(words.whole, plain)) return text.replace(plain, words.whole[plain]);
    for (const [pattern, ours] of words.parts) {
      if (new RegExp(pattern).test(plain)) return plain.replace(new RegExp(pattern), ours);
    }
    return text;
  };
  const change = (place) => {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const ours = said(walker.currentNode.data);
      if (ours !== walker.currentNode.data) walker.currentNode.data = ours;
    }
    for (const name of ["aria-label", "placeholder", "title", "alt"]) {
      for (const node of [place, ...place.querySelectorAll("[" + name + "]")]) {
        const text = node.getAttribute(name), ours = text && said(text);
        if (ours && ours !== text) node.setAttribute(name, ours);
      }
    }
  };
  let due = false;
  const look = () => {
    due = false;
    for (const place of document.querySelectorAll(places)) change(place);
    const sidebar = document.querySelector('[data-testid="stSidebar"][aria-label]');
    if (sidebar) sidebar.setAttribute("aria-label", said(sidebar.getAttribute("aria-label")));
    // An icon in a text would be read out by its name, "menu_book icon".
    for (const icon of document.querySelectorAll('[role="img"][translate="no"][aria-label$=" icon"]')) {
      const meant = window.hrAssistantWords.icons[icon.textContent];
      if (meant) icon.setAttribute("aria-label", meant);
      else icon.setAttribute("aria-hidden", "true");
    }
  };
  const soon = () => { if (!due) { due = true; requestAnimationFrame(look); } };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true, characterData: true });
  look();
}
