/** Types a filter, and returns the time in ms until its first rows are painted, and the number of matches in the end. */
export async function find(tab, filter) {
  const field = tab.page.getByRole('combobox', { name: 'Filter' });
  await tab.page.evaluate(watchPaint);
  await field.fill(filter);
  const ms = await tab.page.evaluate((filter) => globalThis.painted(filter), filter);
  return { ms: Math.round(ms), found: await settled(tab) };
}

// Runs in the page: from the input to the frame after the number of matches is in the document.
function watchPaint() {
  const field = document.querySelector('input[role=combobox]');
  const began = new Promise((resolve) => field.addEventListener('input', () => resolve(performance.now()), { once: true }));
  const before = document.querySelector('.row-filter .found').textContent;
  globalThis.painted = async () => {
    const from = await began;
    const note = document.querySelector('.row-filter .found');
    for (;;) {
      await new Promise(requestAnimationFrame);
      if (/^[\d,]+ of/.test(note.textContent) && note.textContent !== before) break;
    }
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return performance.now() - from;
  };
}

/** Returns the number of matches. */
export async function settled(tab) {
  await tab.page.waitForFunction(() => {
    const grid = document.querySelector('[data-testid=resources]');
    return (
      grid.dataset.state === 'in_sync' &&
      grid.getAttribute('aria-busy') === 'false' &&
      /^[\d,]+ of/.test(document.querySelector('.row-filter .found').textContent)
    );
  });
  const note = await tab.page.locator('.row-filter .found').innerText();
  return Number(note.split(' ')[0].replaceAll(',', ''));
}
