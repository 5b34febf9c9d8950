import type { Unit } from './format';

/** A field of some resources. */
export interface Field {
  readonly id: string;
  /** Numbers are aligned to the right. */
  readonly numeric: boolean;
  /** A text with few distinct values, which are shown as badges. */
  readonly enumeration: boolean;
  /** An enumeration of well-known states. */
  readonly state: boolean;
  /** The width in characters, for all but the longest values of the sample. */
  readonly width: number;
  /** How informative it is, compared with other fields. */
  readonly worth: number;
  /** Of numbers, by the name. */
  readonly unit?: Unit | undefined;
  /** Times, which are shown as ages. */
  readonly time?: boolean;
  /** It is named as a secret, and shown only to those who choose it. */
  readonly secret?: boolean;
  /** Another title than its path. */
  readonly title?: string;
  /** Its place among the first columns. */
  readonly lead?: number;
  /** It takes the place of the key. */
  readonly isKey?: boolean;
}
