// @vitest-environment happy-dom
import { renderToString } from '@vue/server-renderer';
import { expect, test } from 'vitest';
import { computed, createApp, createSSRApp, defineComponent, effectScope, h, nextTick, shallowRef } from 'vue';
import { useWatch } from '../src/vue.js';
import { Counted, remove, upsert } from './line.js';

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
