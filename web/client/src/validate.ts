import { Derived } from './derived.js';
import { attempt, type Readable } from './listeners.js';
import { ReadOnly } from './read_only.js';
import type { Changes } from './replica.js';
import type { Resource } from './resource.js';
import type { SchemaIssue, SchemaOutput, SchemaResult, StandardSchema } from './standard_schema.js';
import type { View } from './view.js';

export type { SchemaIssue, SchemaOutput, StandardSchema } from './standard_schema.js';

/** What is done with a resource whose value does not fit: it is left out, or kept as it is, or the store is closed. */
export type OnInvalid = 'drop' | 'keep' | 'close';

export interface ValidateOptions<P extends OnInvalid = OnInvalid> {
  /** `drop` unless set. */
  readonly onInvalid?: P | undefined;
  /** Called for each resource whose value does not fit. */
  readonly onIssues?: ((resource: Resource, issues: readonly SchemaIssue[]) => void) | undefined;
}

/** A value did not fit its schema, with `onInvalid: 'close'`. */
export class InvalidValueError extends Error {
  override readonly name = 'InvalidValueError';

  constructor(
    readonly resource: Resource,
    readonly issues: readonly SchemaIssue[],
  ) {
    super(`the value of ${JSON.stringify(resource.key)} does not fit its schema: ${issues.map(textOf).join('; ')}`);
  }
}

/** A store whose values are those that a schema returns. It is followed until it is closed. */
export interface Validated<V> extends Readable<V> {
  readonly watch: string;
  close(): void;
}

/**
 * Returns a store with the values that a schema returns for those of another one. Each value is validated once. With
 * `onInvalid: 'close'` it closes with an `InvalidValueError`, and shows the last state that fits. A value for which the schema
 * throws does not fit. The schema must be synchronous: otherwise the store closes with a TypeError.
 */
export function validated<S extends StandardSchema>(
  store: Readable & { readonly watch: string },
  schema: S,
  options: ValidateOptions<'keep'> & { readonly onInvalid: 'keep' },
): Validated<unknown>;
export function validated<S extends StandardSchema>(
  store: Readable & { readonly watch: string },
  schema: S,
  options?: ValidateOptions<'drop' | 'close'>,
): Validated<SchemaOutput<S>>;
export function validated(
  store: Readable & { readonly watch: string },
  schema: StandardSchema,
  options: ValidateOptions = {},
): Validated<unknown> {
  return new ValidatedStore(store, schema, options);
}

class ValidatedStore extends Derived<unknown, View, Changes> implements Validated<unknown> {
  readonly watch: string;
  #map = new Map<string, Resource>();
  #shown: View['resources'] = new ReadOnly(this.#map);
  #revision = '';
  #error: Error | undefined;
  #closed: View | undefined;

  constructor(
    store: Readable & { readonly watch: string },
    private readonly schema: StandardSchema,
    private readonly options: ValidateOptions,
  ) {
    super();
    this.watch = store.watch;
    this.follow(store);
  }

  protected update({ resources, revision }: View, changes: Changes): Changes | undefined {
    if (this.#error) return undefined;
    try {
      const keys = changes.replaced ? resources.keys() : changes.keys;
      // None is shown before all are checked.
      const checked = [...keys].map((key) => [key, this.#checked(resources.get(key))] as const);
      this.#revision = revision;
      return this.#show(checked, changes);
    } catch (error) {
      this.#end(error as Error);
      return undefined;
    }
  }

  #end(error: Error): void {
    this.#error = error;
    this.end();
  }

  protected derive(view: View): View {
    const error = this.#error;
    const state = { ...view, resources: this.#shown, revision: this.#revision };
    if (!error) return state;
    return (this.#closed ??= { ...state, state: 'closed', since: Date.now(), reason: error.message, error });
  }

  protected nothing(): Changes {
    return { replaced: false, keys: new Set() };
  }

  protected everything(): Changes {
    return { replaced: false, keys: new Set(this.#shown.keys()) };
  }

  #checked(resource: Resource | undefined): Resource | undefined {
    if (!resource) return undefined;
    const result = this.#check(resource);
    if (!result.issues) return result.value === resource.value ? resource : { ...resource, value: result.value };
    const { onInvalid = 'drop' } = this.options;
    this.#tell(resource, result.issues);
    if (onInvalid === 'close') throw new InvalidValueError(resource, result.issues);
    return onInvalid === 'keep' ? resource : undefined;
  }

  // A library may return a promise because the schema is asynchronous, or because it has thrown, which only time tells.
  #check(resource: Resource): SchemaResult<unknown> {
    const { vendor, validate } = this.schema['~standard'];
    try {
      const result = validate(resource.value);
      if (!('then' in result)) return result;
      const mistake = `the schema, of ${vendor}, is asynchronous: want one whose checks and transformations are not`;
      result.then(
        () => this.#endLate(new TypeError(mistake)),
        (error) => this.#tell(resource, thrown(error)),
      );
      return { issues: [untold] };
    } catch (error) {
      return { issues: thrown(error) };
    }
  }

  #endLate(error: Error): void {
    if (this.#error) return;
    this.#end(error);
    this.again();
  }

  #tell(resource: Resource, issues: readonly SchemaIssue[]): void {
    const { onIssues } = this.options;
    if (onIssues && issues[0] !== untold) attempt(() => onIssues(resource, issues));
  }

  #show(checked: ReadonlyArray<readonly [string, Resource | undefined]>, { replaced }: Changes): Changes | undefined {
    if (checked.length === 0 && !replaced) return undefined;
    if (replaced) this.#map = new Map();
    for (const [key, resource] of checked) resource ? this.#map.set(key, resource) : this.#map.delete(key);
    this.#shown = new ReadOnly(this.#map);
    return { replaced, keys: new Set(replaced ? [] : checked.map(([key]) => key)) };
  }
}

// It is told when more is known.
const untold: SchemaIssue = { message: 'the schema threw, or is asynchronous' };

const thrown = (error: unknown): SchemaIssue[] => [{ message: `the schema threw: ${error instanceof Error ? error.message : error}` }];

function textOf({ message, path = [] }: SchemaIssue): string {
  const at = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return at ? `${at}: ${message}` : message;
}
