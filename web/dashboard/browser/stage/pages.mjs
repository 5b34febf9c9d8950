/** Every page of the dashboard, and an element that exists once it is complete. */
export const pages = [
  { name: 'topology', hash: '#/', shows: '[data-testid=topology] [data-node="watch services"]' },
  { name: 'overview', hash: '#/watches', shows: '[data-testid=watch-row][data-watch=services]' },
  { name: 'watch', hash: '#/watches/services', shows: '[data-testid=resources][data-state=in_sync] [role=row][data-key]' },
  { name: 'stream', hash: '#/stream/nodes', shows: '[data-testid=wire] [data-event=end_of_snapshot]' },
  { name: 'subscribers', hash: '#/subscribers', shows: '[data-testid=subscribers] .totals' },
  { name: 'changes', hash: '#/changes/notes', shows: '[data-testid=feed] [role=listitem]' },
  { name: 'replicas', hash: '#/replicas', shows: '[data-testid=replicas] .limits' },
  { name: 'health', hash: '#/health', shows: '[data-testid=health] .incidents, [data-testid=health] [aria-labelledby=incidents]' },
  { name: 'timeline', hash: '#/timeline', shows: '[data-testid=timeline-row][data-watch=services]' },
  { name: 'timeline_watch', hash: '#/timeline/services', shows: '[data-testid=timeline] .charts' },
];

const watch = pages.find(({ name }) => name === 'watch').shows;

/** All scenes: the pages, and the panels and dialogs in them. */
export const scenes = [
  ...pages.map((page) => ({ ...page, pose: () => {} })),
  {
    name: 'detail',
    hash: '#/watches/services',
    shows: watch,
    async pose(tab) {
      await tab.rows.nth(2).click();
      await tab.detail.waitFor();
    },
  },
  {
    name: 'editor',
    hash: '#/watches/notes',
    shows: watch,
    async pose(tab) {
      await tab.rows.first().click();
      await tab.detail.getByRole('button', { name: 'Edit' }).click();
      await tab.page.getByRole('dialog').getByRole('textbox').waitFor();
    },
  },
];

/** Completes a scene in a tab that was opened at its hash. */
export async function enter(scene, tab) {
  await tab.page.locator(scene.shows).first().waitFor();
  await scene.pose(tab);
}
