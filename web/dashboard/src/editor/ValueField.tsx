import { type RefObject, useId } from 'react';
import type { Fault } from './json';
import type { Validation } from './validation';

interface Props {
  field: RefObject<HTMLTextAreaElement | null>;
  text: string;
  fault: Fault | undefined;
  validation: Validation;
  readOnly: boolean;
  onChange(text: string): void;
  onFault(): void;
}

/** The text of a value, with its errors below. */
export function ValueField({ field, text, fault, validation, readOnly, onChange, onFault }: Props) {
  const id = useId();
  const wrong = fault !== undefined || validation.state === 'refused';
  return (
    <div className="value">
      <label htmlFor={id}>Value (JSON)</label>
      <textarea
        id={id}
        ref={field}
        value={text}
        readOnly={readOnly}
        rows={14}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        wrap="off"
        aria-invalid={wrong}
        aria-describedby={`${id}-verdict`}
        onChange={(event) => onChange(event.target.value)}
      />
      <div id={`${id}-verdict`} className={wrong ? 'verdict wrong' : 'verdict'} role="status">
        {fault && (
          <>
            <button type="button" onClick={onFault}>
              line {fault.line}, column {fault.column}
            </button>{' '}
            {fault.reason}
          </>
        )}
        {!fault && textOf(validation)}
      </div>
    </div>
  );
}

function textOf({ state, refusal }: Validation): string {
  switch (state) {
    case 'none':
      return '';
    case 'asking':
      return 'Checking…';
    case 'accepted':
      return 'Valid';
    case 'refused':
      return refusal?.status ? `Rejected (${refusal.status}): ${refusal.reason}` : `Not checked: ${refusal?.reason}`;
  }
}
