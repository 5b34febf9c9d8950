/** Every page of the dashboard, and what is there once it shows what it is for. */
export const pages = [
  { name: 'overview', hash: '#/', shows: '[data-testid=watch-row][data-watch=services]' },
  { name: 'watch', hash: '#/watches/services', shows: '[data-testid=resources][data-state=in_sync] [role=row][data-key]' },
  { name: 'notes', hash: '#/watches/notes', shows: '[data-testid=resources][data-state=in_sync] [role=row][data-key]' },
];
