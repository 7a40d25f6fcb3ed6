// Large figures.

function enlarge(picture) {
  const dialog = document.getElementById("large");
  const svg = picture.querySelector("svg");
  const home = svg.parentNode;
  home.style.height = `${home.offsetHeight}px`; // the page stays as it is behind the dialog
  dialog.querySelector("div").append(svg);
  const back = () => {
    home.append(svg);
    home.style.height = "";
  };
  dialog.addEventListener("close", back, { once: true });
  dialog.showModal();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const picture of document.querySelectorAll(".picture")) {
    const button = picture.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => enlarge(picture));
    picture.querySelector("svg").addEventListener("click", () => {
      if (!document.querySelector("dialog[open]")) enlarge(picture);
    });
  }
  const dialog = document.getElementById("large");
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
});
