/**
 * A schema of any library that implements Standard Schema, version 1: zod, valibot, arktype and others. The types are
 * those of https://standardschema.dev, as far as they are used here.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<SchemaIssue> };

/** What is wrong with a value, and where. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** The type of the values that a schema returns. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];
