/**
 * Watches all documents of a visitor, at each change and each frame of the screen: one
 * document must never show services of two owners, nor of another owner than the user whom
 * it names. reports gets what was seen otherwise.
 */
export async function witness(visitor) {
  const reports = [];
  await visitor.context.exposeFunction('reportMixed', (text) => reports.push(text));
  await visitor.context.addInitScript(watchOwners);
  return reports;
}

// Runs in each page.
function watchOwners() {
  const owners = new Set();
  const look = () => {
    const text = document.body?.textContent ?? '';
    for (const [owner] of text.matchAll(/(alice|bob)(?=\/secret| reads)/g)) owners.add(owner);
    const user = /Signed in as (alice|bob)/.exec(text)?.[1];
    if (owners.size > 1 || (user && owners.size > 0 && !owners.has(user))) globalThis.reportMixed(`${user}: ${[...owners]}: ${text}`);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  const frame = () => {
    look();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
