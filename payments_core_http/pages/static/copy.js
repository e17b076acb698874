// Copies the value beside a button, and says so. Without it the value is a text to select. It loads
// in the head, so that the buttons are there when the page is painted; on the checkout page it is
// served as the beginning of checkout.js.
"use strict";

document.documentElement.classList.add("js");

{
  const COPIED_MS = 2_000;
  const COPY_TIMEOUT_MS = 2_000;

  // A browser may have no clipboard, refuse it, or never say: then the reader copies.
  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    const news = document.getElementById("news");
    const { done, refused, select } = news.dataset;
    const label = button.dataset.label ??= button.textContent;
    const write = async () => navigator.clipboard.writeText(code.textContent);
    const silence = new Promise((_, reject) => { setTimeout(reject, COPY_TIMEOUT_MS); });
    try {
      await Promise.race([write(), silence]);
      button.textContent = news.textContent = done;
      setTimeout(() => { button.textContent = label; }, COPIED_MS);
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = refused;
      news.textContent = `${refused}. ${select}`;
    }
  };

  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".copied button");
    if (button) copy(button);
  });
}
