import { type RefObject, type UIEvent, useId, useMemo, useRef } from 'react';
import { ValueText } from '../text/KeyText';
import { isPlain, type Piece, pieces } from '../text/visible';
import { HiddenChars } from './HiddenChars';
import { highlight, type Span } from './highlight';
import type { Fault } from './json';
import type { Language } from './language';
import type { Validation } from './validation';

interface Props {
  field: RefObject<HTMLTextAreaElement | null>;
  text: string;
  language: Language;
  fault: Fault | undefined;
  validation: Validation;
  readOnly: boolean;
  onChange(text: string): void;
  onLanguage(language: Language): void;
  onFault(): void;
  /** The user wants to see a character of the text. */
  onSelect(at: number): void;
}

/** The text of a value, coloured, with its errors below. */
export function ValueField({ field, text, language, fault, validation, readOnly, onChange, onLanguage, onFault, onSelect }: Props) {
  const id = useId();
  const wrong = fault !== undefined || validation.state === 'refused';
  const back = useRef<HTMLPreElement>(null);
  const spans = useMemo(() => highlight(text, language), [text, language]);
  // The coloured text is behind that of the field, and moves with it.
  const onScroll = ({ currentTarget: { scrollTop, scrollLeft } }: UIEvent) => back.current?.scrollTo(scrollLeft, scrollTop);
  return (
    <div className="value">
      <div className="bar">
        <label htmlFor={id}>Value ({language === 'json' ? 'JSON' : 'YAML'})</label>
        <button
          type="button"
          className="push language"
          disabled={readOnly || fault !== undefined}
          onClick={() => onLanguage(language === 'json' ? 'yaml' : 'json')}
        >
          {language === 'json' ? 'Edit as YAML' : 'Edit as JSON'}
        </button>
      </div>
      <div className="coloured">
        <pre ref={back} aria-hidden="true">
          {spans.map(({ text, kind }, i) => (
            <Coloured key={i} text={text} kind={kind} />
          ))}
          {'\n'}
        </pre>
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
          onScroll={onScroll}
        />
      </div>
      <HiddenChars text={text} onSelect={onSelect} />
      <div id={`${id}-verdict`} className={wrong ? 'verdict wrong' : 'verdict'} role="status">
        {fault && (
          <>
            <button type="button" onClick={onFault}>
              line {fault.line}, column {fault.column}
            </button>{' '}
            <ValueText text={fault.reason} />
          </>
        )}
        {!fault && <ValueText text={textOf(validation)} />}
      </div>
    </div>
  );
}

// The text itself, with marks around hidden characters: it must be as wide as that of the field.
function Coloured({ text, kind }: Span) {
  const parts = isPlain(text, 'text') ? text : pieces(text, 'text').map((piece, i) => <Marked key={i} piece={piece} />);
  return kind === '' ? parts : <span data-kind={kind}>{parts}</span>;
}

const Marked = ({ piece: { text, char } }: { piece: Piece }) => (char === undefined ? text : <span className="hidden-char">{char}</span>);

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
