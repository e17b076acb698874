// Copies the value beside a button, and shows the current section. Without it, readers select and
// scroll. checkout.js begins with it.
document.documentElement.classList.add("js");

// On a narrow screen the dashboard's sections scroll sideways.
document.addEventListener("DOMContentLoaded", () => {
  const section = document.querySelector(".top [aria-current]");
  if (section) section.closest("nav").scrollLeft = section.offsetLeft - 100;
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest(".copied button");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  const news = document.getElementById("news");
  const { done, refused, select } = news.dataset;
  const label = button.dataset.label ??= button.textContent;
  try {
    // A browser may have no clipboard, refuse it, or never say: then the reader copies.
    await Promise.race([
      navigator.clipboard.writeText(code.textContent),
      new Promise((_, reject) => { setTimeout(reject, 2_000); }),
    ]);
    button.textContent = news.textContent = done;
    setTimeout(() => { button.textContent = label; }, 2_000);
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = refused;
    news.textContent = `${refused}. ${select}`;
  }
});
