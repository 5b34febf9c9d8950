export type { DerivedView } from './derived.js';
export { type GroupBy, type GroupIndex, type GroupsView, groupBy } from './group_by.js';
export { type Query, type QueryOptions, type QueryView, query, type Rows } from './live_query.js';
