// @vitest-environment happy-dom
import { renderToString } from '@vue/server-renderer';
import { expect, expectTypeOf, test } from 'vitest';
import { computed, createApp, createSSRApp, defineComponent, effectScope, h, nextTick, ref, type ShallowRef, shallowRef } from 'vue';
import type { Resource } from '../src/resource.js';
import { useCounts, useQuery, useResource, useWatch, useWindow } from '../src/vue.js';
import { Counted, remove, upsert } from './line.js';
import { countsText, ShownCounts, ShownWindow, textOf } from './live.js';

test('a component shows each state, computed values follow, and unmounting ends the subscription', async () => {
  const followed = new Counted();
  const List = defineComponent(() => {
    const view = useWatch(followed);
    const sum = computed(() => [...view.value.resources.values()].reduce((all, { value }) => all + value, 0));
    return () => h('p', `${view.value.state} ${view.value.resources.size} ${sum.value}`);
  });
  const place = document.createElement('div');
  const app = createApp(List);
  app.mount(place);
  expect(place.textContent).toBe('connecting 0 0');
  await followed.snapshot(5, { a: 1, b: 2 });
  await nextTick();
  expect(place.textContent).toBe('in_sync 2 3');
  followed.line.send('w@e-6', upsert('a', 6, 10), remove('b', 6));
  await nextTick();
  expect(place.textContent).toBe('in_sync 1 10');
  expect(followed.listeners).toBe(1);
  app.unmount();
  expect(followed.listeners).toBe(0);
  followed.tide.close();
});

test('in a scope, without a component, and with another store', async () => {
  const [a, b] = [new Counted(), new Counted()];
  await a.snapshot(1, { x: 1 });
  await b.snapshot(9, { x: 9 });
  const chosen = shallowRef(a);
  const scope = effectScope();
  const view = scope.run(() => useWatch(chosen))!;
  expect(view.value.resources.get('x')?.value).toBe(1);
  chosen.value = b;
  expect(view.value.resources.get('x')?.value).toBe(9);
  expect([a.listeners, b.listeners]).toEqual([0, 1]);
  scope.stop();
  expect(b.listeners).toBe(0);
  a.tide.close();
  b.tide.close();
});

test('a server renders the state, and keeps no subscription', async () => {
  const followed = new Counted();
  await followed.snapshot(5, { a: 1 });
  const List = defineComponent(() => {
    const view = useWatch(followed);
    return () => h('p', `${view.value.state} ${view.value.resources.size}`);
  });
  expect(await renderToString(createSSRApp(List))).toBe('<p>in_sync 1</p>');
  expect(followed.listeners).toBe(0);
  followed.tide.close();
});

/** A row of notes that writes down when it is rendered. */
const rowOf = (notes: Counted, rendered: string[]) =>
  defineComponent(
    (props: { name: string }) => {
      const resource = useResource(notes, () => props.name);
      return () => {
        rendered.push(props.name);
        return h('p', `${props.name}=${resource.value?.value ?? 'none'} `);
      };
    },
    { props: ['name'] },
  );

test('of 10,000 rows, those whose key has changed are rendered', async () => {
  const notes = new Counted();
  const names = Array.from({ length: 10_000 }, (_, i) => `k${i}`);
  await notes.snapshot(1, Object.fromEntries(names.map((name, i) => [name, i])));
  const rendered: string[] = [];
  const Row = rowOf(notes, rendered);
  const place = document.createElement('div');
  const app = createApp(() => names.map((name) => h(Row, { key: name, name })));
  app.mount(place);
  expect([rendered.length, notes.listeners]).toEqual([10_000, 1]);
  rendered.length = 0;
  notes.line.send('w@e-4', upsert('k7', 2, -1), remove('k8', 3), upsert('k9', 4, -3));
  await nextTick();
  expect(rendered.sort()).toEqual(['k7', 'k8', 'k9']);
  expect(place.textContent?.slice(0, 100)).toContain('k6=6 k7=-1 k8=none k9=-3 k10=10 ');
  app.unmount();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('a resource goes and comes back, stays the same over a reset that changes nothing, and ends with the scope', async () => {
  const notes = new Counted();
  const scope = effectScope();
  const resource = scope.run(() => useResource(notes, 'a'))!;
  expectTypeOf(resource).toEqualTypeOf<Readonly<ShallowRef<Resource<number> | undefined>>>();
  expect(resource.value).toBeUndefined();
  await notes.snapshot(1, { a: 1, b: 2 });
  const before = resource.value;
  expect(before).toEqual({ key: 'a', revision: '1', value: 1 });
  notes.line.snapshot(1, { a: 1 }, 'behind');
  expect(resource.value).toBe(before);
  notes.line.send('w@e-2', remove('a', 2));
  expect(resource.value).toBeUndefined();
  notes.line.send('w@e-3', upsert('a', 3, 3));
  expect(resource.value?.value).toBe(3);
  notes.line.snapshot(9, {}, 'behind');
  expect(resource.value).toBeUndefined();
  scope.stop();
  notes.line.send('w@e-10', upsert('a', 10, 10));
  expect([resource.value, notes.listeners]).toEqual([undefined, 0]);
  notes.tide.close();
});

test('a resource follows another key and another store', async () => {
  const [a, b] = [new Counted(), new Counted()];
  await a.snapshot(1, { x: 1, y: 2 });
  await b.snapshot(9, { y: 9 });
  const [store, key] = [shallowRef(a), ref('x')];
  const scope = effectScope();
  const resource = scope.run(() => useResource(store, key))!;
  expect(resource.value?.value).toBe(1);
  key.value = 'y';
  expect(resource.value?.value).toBe(2);
  store.value = b;
  expect([resource.value?.value, a.listeners, b.listeners]).toEqual([9, 0, 1]);
  scope.stop();
  expect(b.listeners).toBe(0);
  a.tide.close();
  b.tide.close();
});

test('a server renders a resource, and keeps no subscription', async () => {
  const notes = new Counted();
  await notes.snapshot(5, { a: 1 });
  expect(await renderToString(createSSRApp(rowOf(notes, []), { name: 'a' }))).toBe('<p>a=1 </p>');
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('a query follows its store, other options and another store, until the scope ends', async () => {
  const [a, b] = [new Counted(), new Counted()];
  await a.snapshot(5, { x: 1, y: 2, z: 3 });
  await b.snapshot(9, { b: 9 });
  const [store, least] = [shallowRef(a), ref(2)];
  const scope = effectScope();
  const options = () => {
    const from = least.value;
    const filter = ({ value }: Resource<number>) => value >= from;
    return { filter, compare: (one: Resource<number>, other: Resource<number>) => other.value - one.value };
  };
  const view = scope.run(() => useQuery(store, options))!;
  const text = computed(() => [...view.value.rows].map(({ key, value }) => `${key}=${value}`).join());
  expect([view.value.state, text.value]).toEqual(['in_sync', 'z=3,y=2']);
  a.line.send('w@e-6', upsert('x', 6, 7), remove('y', 6));
  expect(text.value).toBe('x=7,z=3');
  least.value = 5;
  expect([text.value, a.listeners]).toEqual(['x=7', 1]);
  store.value = b;
  expect([text.value, a.listeners, b.listeners]).toEqual(['b=9', 0, 1]);
  scope.stop();
  expect(b.listeners).toBe(0);
  const List = defineComponent(() => {
    const view = useQuery(b);
    return () => h('p', `${view.value.rows.size}`);
  });
  expect([await renderToString(createSSRApp(List)), b.listeners]).toEqual(['<p>1</p>', 0]);
  a.tide.close();
  b.tide.close();
});

test('a window and counts are followed until the scope ends, also another one', async () => {
  const [page, next, counts] = [new ShownWindow(7, 'a'), new ShownWindow(9, 'x'), new ShownCounts({ up: 2 })];
  const shown = shallowRef(page);
  const scope = effectScope();
  const [rows, states] = scope.run(() => [useWindow(shown), useCounts(() => counts)] as const)!;
  const text = computed(() => `${textOf(rows.value)}, ${countsText(states.value)}`);
  expect(text.value).toBe('a of 7, up=2 of 2');
  page.set(8, 'a', 'b');
  counts.set({ down: 1, up: 2 });
  expect(text.value).toBe('a,b of 8, down=1,up=2 of 3');
  shown.value = next;
  expect([text.value, page.listeners, next.listeners]).toEqual(['x of 9, down=1,up=2 of 3', 0, 1]);
  scope.stop();
  expect([next.listeners, counts.listeners]).toEqual([0, 0]);
});
