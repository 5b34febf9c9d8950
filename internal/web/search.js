// The search of the documentation: a field at the top of each page, and the sections that have the
// words that are typed. Nothing is loaded before somebody uses it, and nothing leaves the browser.

const most = 12; // results that are shown

/** Returns the sections that have every word of a query, or words that begin so, the best first. */
export function find(sections, query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_.-]+/gu) ?? [];
  if (words.length === 0) return [];
  const found = sections.map((section) => ({ section, score: score(section, words) })).filter((one) => one.score > 0);
  return found.sort((a, b) => b.score - a.score).map((one) => one.section);
}

function score({ page, heading = '', text }, words) {
  let sum = 0;
  for (const word of words) {
    const titles = heading === '' ? 8 * times(page, word) : 10 * times(heading, word) + times(page, word);
    const here = titles + Math.min(5, times(text, word));
    if (here === 0) return 0;
    sum += here;
  }
  return sum;
}

/** Counts the words of a text that begin with another one. */
function times(text, word) {
  let count = 0;
  for (let at = -1; (at = indexOf(text, word, at + 1)) >= 0; ) count++;
  return count;
}

function indexOf(text, word, from) {
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(word, from); at >= 0; at = lower.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(lower[at - 1]) || !/[\p{L}\p{N}]/u.test(word[0])) return at;
  }
  return -1;
}

/** Returns the part of a text that has the first of the words. */
export function excerpt(text, query) {
  const [word = ''] = query.toLowerCase().match(/[\p{L}\p{N}_.-]+/gu) ?? [];
  const at = Math.max(0, indexOf(text, word, 0));
  const from = at < 60 ? 0 : text.lastIndexOf(' ', at - 40) + 1;
  const to = from + 160 < text.length ? text.lastIndexOf(' ', from + 160) : text.length;
  return `${from > 0 ? '… ' : ''}${text.slice(from, Math.max(to, from + 80))}${to < text.length ? ' …' : ''}`;
}

function element(name, properties = {}, ...children) {
  const out = Object.assign(document.createElement(name), properties);
  out.append(...children);
  return out;
}

/** Adds the field to a page. */
function attach(place) {
  const base = new URL('.', import.meta.url);
  let index;
  const load = () => {
    index ??= fetch(new URL('search.json', base)).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status}`);
      return answer.json();
    });
    index.catch(() => {
      index = undefined; // the next key tries again
    });
    return index;
  };
  const input = element('input', { type: 'search', id: 'query', autocomplete: 'off', spellcheck: false });
  const status = element('p', { className: 'status' });
  status.setAttribute('role', 'status');
  const list = element('ul');
  const results = element('div', { className: 'results', hidden: true }, status, list);

  const show = async () => {
    const query = input.value;
    if (query.trim() === '') {
      results.hidden = true;
      return;
    }
    let found;
    try {
      found = find(await load(), query);
    } catch {
      found = undefined;
    }
    if (query !== input.value) return; // a later key is answered
    results.hidden = false;
    const shown = found?.slice(0, most) ?? [];
    status.textContent = found === undefined ? 'The index cannot be loaded.' : counted(found.length);
    list.replaceChildren(...shown.map((section) => result(section, query)));
  };
  const result = ({ url, page, heading, text }, query) => {
    const link = element('a', { href: new URL(url, base).href }, heading ? `${page}: ${heading}` : page);
    link.addEventListener('click', () => close(false)); // it may lead to this page
    return element('li', {}, link, element('p', {}, excerpt(text, query)));
  };
  const close = (focus) => {
    input.value = '';
    results.hidden = true;
    if (focus) input.focus();
  };

  input.addEventListener('focus', load, { once: true });
  input.addEventListener('input', show);
  const form = element('form', {}, element('label', { htmlFor: 'query' }, 'Search'), input, results);
  form.setAttribute('role', 'search');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    list.querySelector('a')?.click();
  });
  form.addEventListener('keydown', (event) => {
    const links = [input, ...list.querySelectorAll('a')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape' && !results.hidden) close(true);
    else if (step && !results.hidden) links[Math.min(links.length - 1, Math.max(0, links.indexOf(document.activeElement) + step))].focus();
    else return;
    event.preventDefault();
  });
  place.append(form);
}

function counted(n) {
  if (n === 0) return 'Nothing found';
  return n > most ? `${n} sections, of which these fit best` : `${n} section${n === 1 ? '' : 's'}`;
}

if (globalThis.document) attach(document.getElementById('search'));
