// What the client promises, against a real gateway, for every runtime with fetch. They use
// nothing but the client and the web's own functions.

/**
 * Returns the scenarios by name. client: the entry points of the package; place: url of the gateway, control of
 * its process, and a token that may read secrets.
 */
export function scenariosOf({ watch, RefusedError }, place) {
  const followed = [];
  const follow = (watches, options) => {
    const tide = watch(place.url, { watches, ...options });
    followed.push(tide);
    return tide;
  };
  // A scenario that fails leaves nothing open.
  const closing = async (run) => {
    try {
      await run();
    } finally {
      for (const tide of followed.splice(0)) tide.close();
    }
  };
  const scenarios = {
    async 'a snapshot, a change and a delete'() {
      await put('notes', 'a', { text: 'milk' });
      await put('notes', 'b', { text: 'tea' });
      const tide = follow(['notes']);
      const notes = tide.store('notes');
      await until(notes, ({ state, resources }) => state === 'in_sync' && resources.get('b')?.value.text === 'tea');
      await put('notes', 'a', { text: 'cream' });
      await until(notes, ({ resources }) => resources.get('a')?.value.text === 'cream');
      await erase('notes', 'a');
      await until(notes, ({ resources }) => !resources.has('a') && resources.has('b'));
      tide.close();
      equal(notes.state, 'closed');
    },

    async 'keys and values of every kind'() {
      const values = { text: 'Grüße, 東京 🌊', 'a/b?c#d': [null, true, -0.5, { deep: [[[]]] }], 'with space': 'x'.repeat(300_000) };
      for (const [key, value] of Object.entries(values)) await put('notes', key, value);
      const tide = follow([{ watch: 'notes' }]);
      const notes = tide.store('notes');
      const has = (resources, key) => JSON.stringify(resources.get(key)?.value) === JSON.stringify(values[key]);
      await until(notes, ({ resources }) => Object.keys(values).every((key) => has(resources, key)));
      tide.close();
      for (const key of Object.keys(values)) await erase('notes', key);
    },

    async 'exactly some keys, and some before all others'() {
      for (const key of ['k1', 'k,"2"', 'k3']) await put('notes', key, key);
      const tide = follow([
        { watch: 'notes', keys: ['k,"2"', 'k1', 'k4'] },
        { watch: 'notes', first: ['k3', 'k,"2"'] },
      ]);
      const some = tide.store({ watch: 'notes', keys: ['k1', 'k,"2"', 'k4'] });
      const all = tide.store('notes');
      const seen = [];
      all.subscribe(({ first }) => first && seen.push([...first.keys()].sort().join()));
      await until(some, ({ state, resources }) => state === 'in_sync' && resources.size === 2);
      await put('notes', 'k4', 4);
      await until(some, ({ resources }) => resources.get('k4')?.value === 4);
      await until(all, ({ resources }) => resources.has('k4'));
      if (seen.some((keys) => keys !== 'k,"2",k3')) throw new Error(`first were ${seen}`); // none, if all came at once
      for (const key of ['k1', 'k,"2"', 'k3', 'k4']) await erase('notes', key);
    },

    async 'several watches, one of which comes later and one of which leaves'() {
      await put('notes', 'n', 1);
      await put('tasks', 't', 2);
      const tide = follow(['notes']);
      const notes = tide.store('notes');
      await until(notes, ({ resources }) => resources.has('n'));
      const tasks = tide.add('tasks');
      await until(tasks, ({ state, resources }) => state === 'in_sync' && resources.has('t'));
      await until(notes, ({ state }) => state === 'in_sync');
      tide.remove('notes');
      equal(notes.state, 'closed');
      await put('tasks', 't', 3);
      await until(tasks, ({ resources }) => resources.get('t')?.value === 3);
      tide.close();
    },

    async 'views: a prefix, a filter and fields'() {
      await put('tasks', 'work/1', { state: 'open', text: 'report', size: 3 });
      await put('tasks', 'work/2', { state: 'done', text: 'letter', size: 1 });
      await put('tasks', 'home/1', { state: 'open', text: 'dishes', size: 9 });
      const prefix = { watch: 'tasks', prefix: 'work/' };
      const filter = { watch: 'tasks', prefix: 'work/', filter: 'value.state == "open"', fields: ['text'] };
      const tide = follow([prefix, filter]);
      await until(tide.store(prefix), ({ resources }) => String([...resources.keys()].sort()) === 'work/1,work/2');
      const open = tide.store(filter);
      await until(open, ({ resources }) => JSON.stringify([...resources.values()].map(({ value }) => value)) === '[{"text":"report"}]');
      await put('tasks', 'work/1', { state: 'done', text: 'report', size: 3 });
      await until(open, ({ state, resources }) => state === 'in_sync' && resources.size === 0);
      tide.close();
    },

    async 'each view is of one revision, and none is older than the one before'() {
      const tide = follow(['notes']);
      const notes = tide.store('notes');
      await until(notes, ({ state }) => state === 'in_sync');
      const seen = [];
      notes.subscribe(({ revision, resources }) =>
        seen.push([BigInt(revision), Math.max(0, ...[...resources.values()].map(({ revision }) => Number(revision)))]),
      );
      for (let i = 0; i < 50; i++) await put('notes', `many/${i % 5}`, i);
      await until(notes, ({ resources }) => resources.get('many/4')?.value === 49);
      for (const [i, [revision, newest]] of seen.entries()) {
        if (revision < BigInt(newest) || (i > 0 && revision < seen[i - 1][0]))
          throw new Error(`view ${i} is of revision ${revision} and has ${newest}`);
      }
      tide.close();
    },

    async 'a write that conflicts changes nothing'() {
      const { revision } = await put('notes', 'cas', 1);
      const tide = follow([{ watch: 'notes', prefix: 'cas' }]);
      const notes = tide.store({ watch: 'notes', prefix: 'cas' });
      await until(notes, ({ resources }) => resources.get('cas')?.revision === revision);
      await put('notes', 'cas', 2, revision);
      equal((await write('notes', 'cas', 3, revision)).status, 412);
      await put('notes', 'cas/end', true);
      await until(notes, ({ resources }) => resources.has('cas/end'));
      equal(notes.resources.get('cas').value, 2);
      tide.close();
    },

    async 'a token: without one, with a wrong one, and with the right one'() {
      const closed = async (options) => {
        const tide = follow(['secrets'], options);
        const { error } = await until(tide.store('secrets'), ({ state }) => state === 'closed');
        if (!(error instanceof RefusedError)) throw new Error(`closed by ${error}`);
        tide.close();
        return error.status;
      };
      equal(await closed({}), 401);
      const asked = [];
      equal(await closed({ getToken: ({ expired }) => (asked.push(expired), 'a token that nobody has issued') }), 401);
      equal(String(asked), 'false,true');
      const tide = follow(['secrets'], { getToken: ({ expired }) => (expired ? place.token : 'an expired token') });
      await until(tide.store('secrets'), ({ state }) => state === 'in_sync');
      tide.close();
    },

    async 'a watch that does not exist closes its store, and not the others'() {
      const tide = follow(['notes', 'nowhere'], { getToken: () => place.token }); // who is nobody gets 401
      const { error } = await until(tide.store('nowhere'), ({ state }) => state === 'closed');
      equal(error.status, 404);
      await until(tide.store('notes'), ({ state }) => state === 'in_sync');
      tide.close();
    },

    async 'the gateway is killed and comes back: the rows stay until the new state is complete'() {
      await put('notes', 'before', 1);
      const tide = follow(['notes']);
      const notes = tide.store('notes');
      await until(notes, ({ state, resources }) => state === 'in_sync' && resources.has('before'));
      const sizes = [];
      const states = new Set();
      notes.subscribe(({ state, resources }) => {
        states.add(state);
        if (state !== 'in_sync') sizes.push(resources.size);
      });
      await control('kill');
      await until(notes, ({ state }) => state === 'offline' || state === 'stale');
      await control('start');
      await put('notes', 'after', 2);
      await until(notes, ({ state, resources }) => state === 'in_sync' && resources.has('after'));
      if (sizes.length === 0 || sizes.includes(0)) throw new Error(`sizes ${sizes} in states ${[...states]}`);
      tide.close();
    },

    async 'closed means closed'() {
      const tide = follow(['notes']);
      const notes = tide.store('notes');
      await until(notes, ({ state }) => state === 'in_sync');
      tide.close();
      let calls = 0;
      notes.subscribe(() => calls++);
      await put('notes', 'late', Date.now());
      equal(`${notes.state} ${calls}`, 'closed 1');
    },
  };
  return Object.fromEntries(Object.entries(scenarios).map(([name, run]) => [name, () => closing(run)]));

  function write(name, key, value, revision) {
    const url = `${place.url}v1/watches/${name}/resources/${encodeURIComponent(key)}`;
    const headers = { Authorization: `Bearer ${place.token}`, ...(revision && { 'If-Match': `"${revision}"` }) };
    return fetch(url, value === undefined ? { method: 'DELETE', headers } : { method: 'PUT', body: JSON.stringify(value), headers });
  }

  async function put(...write_) {
    const response = await write(...write_);
    const body = await response.json();
    if (!response.ok) throw new Error(`PUT ${write_}: ${response.status} ${body.detail}`);
    return body;
  }

  async function erase(name, key) {
    const response = await write(name, key, undefined);
    if (!response.ok) throw new Error(`DELETE ${key}: ${response.status}`);
    await response.arrayBuffer();
  }

  async function control(order) {
    const response = await fetch(`${place.control}/${order}`, { method: 'POST' });
    if (!response.ok) throw new Error(`${order}: ${await response.text()}`);
    await response.arrayBuffer();
  }
}

/** Runs scenarios one after the other. Returns the error of each that failed, as text, by name; null for the others. */
export async function play(scenarios) {
  const results = {};
  for (const [name, run] of Object.entries(scenarios)) {
    results[name] = await run().then(
      () => null,
      (error) => `${error?.stack ?? error}`,
    );
  }
  return results;
}

/** Resolves with the first view that fits. */
function until(store, fits, ms = 20_000) {
  return new Promise((resolve, reject) => {
    const last = () => JSON.stringify({ state: store.state, reason: store.view.reason, keys: [...store.resources.keys()].slice(0, 20) });
    const late = setTimeout(() => end(() => reject(new Error(`waited ${ms} ms in vain for ${fits}, last: ${last()}`))), ms);
    let unsubscribe = () => {};
    let ended = false;
    const end = (settle) => {
      ended = true;
      clearTimeout(late);
      unsubscribe();
      settle();
    };
    unsubscribe = store.subscribe((view) => {
      if (!ended && fits(view)) end(() => resolve(view));
    });
    if (ended) unsubscribe();
  });
}

function equal(got, want) {
  if (got !== want) throw new Error(`got ${got}, want ${want}`);
}
